"""A trace, settings and chunks made ready for readers: rows, figures, controls and files."""
