"""Business rules: which items a query's first stage boosts, buries, pins, hides or keeps to, written as TOML.

```toml
[[rule]]
name = "service season"
query = "seal kit"                 # words the query holds, all of them; or
pattern = "INC-2023-*"             # the whole query, where * stands for any text
groups = ["sales"]                 # the viewer is in one of these
from = 2026-03-01                  # first and last day
until = 2026-05-31
items = "type = pdf; year >= 2024" # which items: conditions on their fields (core.filters), and
documents = ["price-list.pdf"]     # ids or file names, in the order in which they are pinned
boost = 2                          # one of boost, bury, pin, hide, only
```

What is left out asks for nothing; `on = false` rests a rule. Every condition must hold.
Where no visible item has a field that `items` names, or none compares with the value there, `only` keeps no
item, and other rules do nothing.
"""

from core.rules.rule import Rule
from core.rules.rules import Rules, RulesError

__all__ = ["Rule", "Rules", "RulesError"]
