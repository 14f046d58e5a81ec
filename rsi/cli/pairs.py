"""`rsi pairs | lineage | rollback`: the pairs, who was the champion, and going back."""

import argparse
from datetime import UTC, datetime

from rsi.cli.answer import Answer, Table, command, plain
from rsi.cli.digests import pair_digest
from rsi.cli.opening import opened_ledger
from rsi.domain.promotion import Promotion
from rsi.domain.values import Digest, Value, short
from rsi.errors import UsageError
from rsi.ports import Ledger
from rsi.report.chapters import PairNote
from rsi.report.headlines import change_words
from rsi.report.naming import Naming
from rsi.report.shown import points
from rsi.report.tell_gate import tell_lineage


class PairRow(Value):
    """One pair of the list."""

    role: str
    """`champion`, `former champion`, `successor`, `arm` (of an exam) or `candidate`."""
    note: PairNote


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands."""
    one = command(commands, "pairs", _pairs, "list the pairs that were measured by a gate")
    one.add_argument("--all", action="store_true", help="the search's candidates too")
    command(commands, "lineage", _lineage, "every change of the champion")
    one = command(commands, "rollback", _rollback, "make a former champion the champion again")
    one.add_argument("pair", metavar="PAIR", help="the pair's digest, or its beginning")
    one.add_argument("--reason", required=True, help="why; it is recorded")


def list_pairs(ledger: Ledger, *, every: bool) -> Answer:
    """The pairs and their roles, the champion first."""
    roles = _roles(ledger)
    if every:
        roles |= {p.digest: "candidate" for p in ledger.pairs() if p.digest not in roles}
    naming = Naming(ledger)
    rows = [PairRow(role=role, note=naming.pair(digest)) for digest, role in roles.items()]
    table = Table(
        ("pair", "role", "base", "adapters", "contract"),
        tuple((short(row.note.pair), row.role, *_made_of(row.note)) for row in rows),
        "no pair yet; run `make cycle`",
    )
    return Answer({"pairs": [{"role": row.role, **plain(row.note)} for row in rows]}, (table,))


def show_lineage(ledger: Ledger) -> Answer:
    """Every change of the champion, the newest last."""
    changes = tell_lineage(ledger.promotions(), ledger.verdicts())
    table = Table(
        ("", "pair", "by", "when", "gain", "reason"),
        tuple(
            (
                "*" if change.is_champion else "",
                short(change.pair),
                change_words(change),
                f"{change.at:%Y-%m-%d %H:%M}",
                points(change.gain) if change.gain else "not measured",
                change.reason,
            )
            for change in changes
        ),
        "no champion yet; run `make cycle`",
    )
    champion = changes[-1].pair if changes else None
    return Answer(
        {"champion": champion, "changes": [plain(change) for change in changes]}, (table,)
    )


def roll_back(ledger: Ledger, text: str, reason: str, now: datetime) -> Answer:
    """Records that a former champion is the champion again.

    Raises UsageError for any other pair, and DatabaseError while a generation is being worked on.
    """
    if not reason.strip():
        raise UsageError("a rollback needs a reason that isn't empty: --reason '…'")
    pair = pair_digest(ledger, text)
    with ledger.lock_generation():
        promotions = ledger.promotions()
        former = [promotion.pair for promotion in promotions]
        if pair not in former:
            listed = ", ".join(dict.fromkeys(short(digest) for digest in former)) or "none yet"
            raise UsageError(f"pair {short(pair)} was never the champion; these were: {listed}")
        if pair == former[-1]:
            raise UsageError(f"pair {short(pair)} is the champion already")
        promotion = Promotion(
            ordinal=promotions[-1].ordinal + 1,
            pair=pair,
            replaced=former[-1],
            verdict=None,
            reason=f"rollback: {reason.strip()}",
            at=now,
        )
        ledger.add_promotion(promotion)
    told = f"Pair {short(pair)} is the champion again, instead of {short(former[-1])}."
    return Answer(plain(promotion), (told,))


def _roles(ledger: Ledger) -> dict[Digest, str]:
    """The best known role of each pair that a gate or a promotion named, the champion first."""
    roles: dict[Digest, str] = {}
    promotions = [promotion.pair for promotion in reversed(ledger.promotions())]
    for place, pair in enumerate(promotions):
        roles.setdefault(pair, "former champion" if place else "champion")
    verdicts = ledger.verdicts()
    for verdict in reversed(verdicts):
        roles.setdefault(verdict.successor, "successor")
    for verdict in reversed(verdicts):
        for arm in verdict.arms:
            roles.setdefault(arm.pair, "arm")
    return roles


def _made_of(note: PairNote) -> tuple[str, str, str]:
    adapters = ", ".join(f"{one.slot} {short(one.lora)}" for one in note.loras)
    contract = f"{note.contract_name} {note.contract_version} ({short(note.contract)})"
    return f"{note.base_name} {note.base_format}", adapters or "none", contract


def _pairs(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return list_pairs(ledger, every=arguments.all)


def _lineage(_: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return show_lineage(ledger)


def _rollback(arguments: argparse.Namespace) -> Answer:
    with opened_ledger() as ledger:
        return roll_back(ledger, arguments.pair, arguments.reason, datetime.now(UTC))
