"""Which point to try next: Optuna's tree-structured Parzen estimator (Bergstra et al., NIPS 2011).

Optuna brings a database layer and its migrations, so it is an extra; a grid needs none of it.
"""

from __future__ import annotations

from typing import Any

from core.errors import RankscopeError
from core.evaluation.space import Range, Space, Value


class Optimiser:
    """Asks for points of a space and hears how good they were, higher being better. Seeded: told the same
    again, it asks for the same, so that a sweep that was stopped goes on as if it had not been.

    Raises RankscopeError where Optuna is not installed.
    """

    def __init__(self, space: Space) -> None:
        try:
            import optuna
        except ImportError:
            raise RankscopeError(
                "the optimiser needs Optuna: pip install 'rankscope[sweep]', or list the values and sweep the grid"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._failed = optuna.trial.TrialState.FAIL
        kinds = optuna.distributions
        self._distributions: dict[str, Any] = {}
        for name, values in space.values.items():
            if not isinstance(values, Range):
                self._distributions[name] = kinds.CategoricalDistribution(list(dict.fromkeys(values)))
            elif values.whole:
                ends = int(values.low), int(values.high)
                self._distributions[name] = kinds.IntDistribution(*ends, log=values.log)
            else:
                self._distributions[name] = kinds.FloatDistribution(
                    values.low, values.high, log=values.log
                )
        # Points are asked for in batches: those under way count as poor, so that a batch spreads.
        sampler = optuna.samplers.TPESampler(seed=0, constant_liar=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)

    def ask(self) -> tuple[Any, dict[str, Value]]:
        """What to `tell` with, and the point to try."""
        trial = self._study.ask(self._distributions)
        return trial, dict(trial.params)

    def tell(self, trial: Any, value: float | None) -> None:
        """How good the point was; None: it could not be measured."""
        if value is None:
            self._study.tell(trial, state=self._failed)
        else:
            self._study.tell(trial, value)
