"""What a generation may spend, and whether it has."""

from rsi.domain.evaluation import BudgetRule, Evaluation
from rsi.domain.generation import Generation
from rsi.errors import UsageError
from rsi.stages.parts import Parts


def check_budget(evaluation: Evaluation) -> None:
    """Raises UsageError for a money budget without prices: it could never be held."""
    rule = evaluation.budget
    prices = (rule.usd_per_million_input_tokens, rule.usd_per_million_output_tokens)
    if rule.usd is not None and None in prices:
        raise UsageError(
            f"evaluation {evaluation.name} has budget.usd = {rule.usd:g} but no prices; give "
            "budget.usd_per_million_input_tokens and …_output_tokens, or use budget.tokens"
        )


def is_spent(parts: Parts, generation: Generation, rule: BudgetRule) -> bool:
    """Whether the generation has used up its tokens, seconds or money.

    Every trial of the generation counts, whatever stage ran it and whatever came of it.
    """
    age_s = (parts.clock.now() - generation.opened_at).total_seconds()
    if rule.seconds is not None and age_s >= rule.seconds:
        return True
    if rule.tokens is None and rule.usd is None:
        return False
    usages = [trial.usage for trial in parts.ledger.trials_of(generation=generation.number)]
    given = sum(usage.input_tokens for usage in usages)
    made = sum(usage.output_tokens for usage in usages)
    if rule.tokens is not None and given + made >= rule.tokens:
        return True
    cost = given * (rule.usd_per_million_input_tokens or 0.0)
    cost += made * (rule.usd_per_million_output_tokens or 0.0)
    return rule.usd is not None and cost / 1e6 >= rule.usd
