"""Pairs in words that people know: the base, the adapters, the contract's name."""

from rsi.domain.lora import Base
from rsi.domain.values import Digest
from rsi.ports import Ledger
from rsi.report.chapters import LoraNote, PairNote


class Naming:
    """Looks pairs and bases up; each is asked for once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bases = {base.digest: base for base in ledger.bases()}
        self._notes: dict[Digest, PairNote] = {}

    def pair(self, digest: Digest) -> PairNote:
        """The pair's note. Raises KeyError when there is no such pair."""
        if digest not in self._notes:
            self._notes[digest] = self._note(digest)
        return self._notes[digest]

    def base(self, digest: Digest) -> Base:
        """The base; one that isn't recorded goes by its digest."""
        return self._bases.get(digest) or Base(name=digest[:12], digest=digest, format="unknown")

    def _note(self, digest: Digest) -> PairNote:
        pair = self._ledger.pair(digest)
        model = self._ledger.model(pair.model)
        contract = self._ledger.contract(pair.contract)
        base = self.base(model.base)
        loras = sorted((slot.value, lora) for slot, lora in model.loras.items())
        return PairNote(
            pair=digest,
            model=pair.model,
            base=model.base,
            base_name=base.name,
            base_format=base.format,
            loras=tuple(LoraNote(slot=slot, lora=lora) for slot, lora in loras),
            contract=pair.contract,
            contract_name=contract.name,
            contract_version=contract.version,
        )
