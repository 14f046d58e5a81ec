"""What `rsi doctor` looks at, one check each; every one says what it found and how to mend it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Literal

from rsi.domain.contract import Slot
from rsi.domain.evaluation import Evaluation
from rsi.domain.lora import Model
from rsi.domain.trial import BoxFacts
from rsi.domain.values import Value
from rsi.errors import RsiError
from rsi.ports import ChatRequest, Engine, Ledger
from rsi.settings import Settings

TRAINING = ("torch", "transformers", "peft", "gguf", "safetensors")
CLOCK_TOLERANCE_S = 60


class Check(Value):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warning", "fault"]
    """A warning leaves rsi working with less; a fault doesn't."""
    found: str
    mend: str = ""


def guarded(name: str, look: Callable[[], Check], mend: str) -> Check:
    """The check; an error on the way is its fault, to be mended so."""
    try:
        return look()
    except RsiError as error:
        return Check(name=name, status="fault", found=str(error), mend=mend)


def check_contracts(settings: Settings) -> Check:
    """Whether the contract and the evaluation contract can be read."""
    from rsi import wiring

    files = wiring.contract_files()
    contract = files.read(settings.contract).contract
    evaluation = files.read_evaluation(settings.evaluation)
    return Check(
        name="contracts",
        status="ok",
        found=f"{contract.name} {contract.version}, evaluation {evaluation.name}",
    )


def check_database(url: str, shown: str) -> Check:
    """Whether Postgres answers and has this release's schema."""
    from rsi.edges.ledger.schema import check_head

    check_head(url)
    return Check(name="database", status="ok", found=f"{shown}, at this release's schema")


def check_model(engine: Engine) -> Check:
    """Whether the model answers: it is asked for one token."""
    base = engine.base()
    chat = engine.serve(Model(base=base.digest), ())
    hello = ChatRequest(messages=(("user", "Hello"),), slot=Slot.AGENT, seed=0, max_tokens=1)
    reply = chat.chat(hello)
    found = f"{base.name} ({base.format}) answered in {reply.elapsed_s:.1f} s"
    return Check(name="model", status="ok", found=found)


def check_sandbox(facts: BoxFacts) -> Check:
    """What a box guarantees, and what it can't."""
    found = f"{facts.engine}, level {facts.level}"
    if facts.missing:
        found += f"; not guaranteed: {'; '.join(facts.missing)}"
    elif facts.level == "contained":
        found += "; every limit holds, and system calls are filtered by a deny-list"
    if facts.level == "isolated":
        return Check(name="sandbox", status="ok", found=found)
    status: Literal["warning", "fault"] = "warning" if facts.level == "contained" else "fault"
    mend = "start a Docker engine (Debian: apt-get install docker.io) and run again"
    return Check(name="sandbox", status=status, found=found, mend=mend)


def check_disk(settings: Settings, evaluation: Evaluation) -> Check:
    """Whether there is room above the floor at which work is refused."""
    folder = settings.state_dir
    while not folder.exists():
        folder = folder.parent
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    floor_mb = evaluation.budget.disk_floor_mb
    found = f"{free_mb:,} MB free for {settings.state_dir}, floor {floor_mb:,} MB"
    if free_mb > 2 * floor_mb:
        return Check(name="disk", status="ok", found=found)
    mend = f"free some room, or move the state folder (RSI_STATE_DIR) from {settings.state_dir}"
    return Check(
        name="disk", status="fault" if free_mb < floor_mb else "warning", found=found, mend=mend
    )


def check_clock(ledger: Ledger, now: datetime) -> Check:
    """Whether this machine's time is behind what the ledger has seen."""
    generations = ledger.generations()
    times = [promotion.at for promotion in ledger.promotions()]
    times += [event.at for one in generations[-1:] for event in ledger.events(one.number)]
    newest = max(times, default=now)
    behind_s = (newest - now).total_seconds()
    if behind_s <= CLOCK_TOLERANCE_S:
        return Check(name="clock", status="ok", found=f"{now:%Y-%m-%d %H:%M:%S %Z}")
    return Check(
        name="clock",
        status="fault",
        found=f"this machine says {now:%Y-%m-%d %H:%M:%S %Z}, {behind_s:.0f} s before the newest "
        "event in the ledger",
        mend="set the clock (for example with timedatectl set-ntp true)",
    )


def check_training(is_installed: Callable[[str], bool], evaluation: Evaluation) -> Check:
    """Whether the packages that train adapters are installed."""
    missing = [name for name in TRAINING if not is_installed(name)]
    if not missing:
        return Check(name="training", status="ok", found=", ".join(TRAINING))
    is_needed = evaluation.update.enabled
    return Check(
        name="training",
        status="fault" if is_needed else "warning",
        found=f"missing: {', '.join(missing)}",
        mend="run `make setup`, or turn training off: enabled = false under [update] in the "
        "evaluation contract",
    )


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, in the order in which faults should be mended."""
    from rsi import wiring

    yield guarded("contracts", lambda: check_contracts(settings), "mend each fault of the file")
    yield from _database(settings)
    yield guarded("model", lambda: _model(settings), "run `make setup`, or set RSI_MODEL_URL")
    yield guarded("sandbox", lambda: _sandbox(settings), "start or install a Docker engine")
    try:
        evaluation = wiring.contract_files().read_evaluation(settings.evaluation)
    except RsiError:
        return
    yield check_disk(settings, evaluation)
    yield check_training(lambda name: find_spec(name) is not None, evaluation)


def is_well(checks: Sequence[Check]) -> bool:
    """Whether a generation could run."""
    return all(check.status != "fault" for check in checks)


def _database(settings: Settings) -> Iterator[Check]:
    from rsi import wiring

    shown = "embedded Postgres" if settings.database_url is None else "RSI_DATABASE_URL"
    mend = "run `make setup`; for another Postgres set RSI_DATABASE_URL"
    found = guarded("database", lambda: check_database(wiring.database_url(settings), shown), mend)
    yield found
    if found.status == "ok":
        with closing(wiring.open_ledger(settings)) as ledger:
            yield check_clock(ledger, datetime.now(UTC))


def _sandbox(settings: Settings) -> Check:
    from rsi import wiring

    with wiring.open_sandbox(settings, wiring.say_to_stderr) as sandbox:
        return check_sandbox(sandbox.check())


def _model(settings: Settings) -> Check:
    from rsi import wiring

    if settings.model_url is None:
        from rsi.edges.model_files import SMALL_MODEL_SHA256, check_model_file

        check_model_file(wiring.small_model_path(settings), SMALL_MODEL_SHA256)
    with closing(wiring.open_engine(settings, wiring.open_blobs(settings))) as engine:
        return check_model(engine)
