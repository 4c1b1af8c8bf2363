"""What time on a machine costs (pure).

`amount` is the only place where time becomes money. Every charge, accrual and hold is a difference
of two of its values on the lease's own cumulative running time, so that splits, requeues and edges
of periods telescope: the parts add up to the whole, to the last digit.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Final

from billing.values import HOUR_US, MOST, PLACES, Quantities, Rate, RateCard, Span
from portal.core.errors import Invalid, Refused

EXACT: Final = Context(prec=60, rounding=ROUND_HALF_EVEN)
GIB: Final = 1 << 30
ANY: Final = "*"


def amount(rate: Decimal, elapsed_us: int) -> Decimal:
    """Return what so many microseconds at a rate an hour come to, half-even to 12 places."""
    exact = EXACT.divide(EXACT.multiply(rate, Decimal(elapsed_us)), Decimal(HOUR_US))
    return exact.quantize(PLACES, context=EXACT)


def amount_of(rate: Decimal, span: Span) -> Decimal:
    """Return what a stretch of a lease's running time costs: a difference of two amounts."""
    return amount(rate, span.end_us) - amount(rate, span.begin_us)


def rate_of(card: RateCard, wanted: Quantities) -> Rate:
    """Return what an hour of these resources costs.

    Raises `Refused` (`unpriced`) for a type of GPU that has neither an entry nor `*`.
    """
    gpu = Decimal(0)
    if wanted.gpus_per_node:
        found = card.gpu_hour.get(wanted.gpu_type.lower(), card.gpu_hour.get(ANY))
        if found is None:
            kind = wanted.gpu_type or "any type of"
            message = (
                f"The cluster's rate card has no price for {kind} GPUs. "
                f"A site admin can add it, or `*` for all other types."
            )
            raise Refused("unpriced", message)
        gpu = found * wanted.gpus_per_node
    memory = Decimal(wanted.memory_bytes_per_node) / GIB * card.memory_gib_hour
    per_node = card.node_hour + gpu + card.cpu_hour * wanted.cpus_per_node + memory
    per_hour = EXACT.multiply(per_node, Decimal(wanted.nodes)).quantize(PLACES, context=EXACT)
    return Rate(per_hour=per_hour, currency=card.currency)


def shares(whole: Decimal, weights: Sequence[int]) -> list[Decimal]:
    """Cut an amount by weights; the last share takes the remainder, so that nothing is lost."""
    total = sum(weights)
    if not weights or total <= 0 or min(weights) < 0:
        raise ValueError("shares need weights of 0 or more, not all 0")
    given: list[Decimal] = []
    for weight in weights[:-1]:
        part = EXACT.divide(EXACT.multiply(whole, Decimal(weight)), Decimal(total))
        given.append(part.quantize(PLACES, context=EXACT))
    return [*given, whole - sum(given, Decimal(0))]


def parse_amount(text: object, *, field: str, places: int = 12) -> Decimal:
    """Read an amount of money that a person or program gives. Raises `Invalid` at the field."""
    try:
        value = Decimal(str(text).strip())
    except InvalidOperation as error:
        raise Invalid.at(field, "Give an amount such as 1250.00.") from error
    if not value.is_finite() or value < 0:
        raise Invalid.at(field, "An amount is 0 or more.")
    if value > MOST:
        raise Invalid.at(field, f"An amount is at most {MOST:,f}.")
    if EXACT.quantize(value, Decimal(1).scaleb(-places)) != value:
        raise Invalid.at(field, f"Give at most {places} places after the point.")
    return value


def parse_currency(text: object, *, field: str = "currency") -> str:
    """Read a currency's code (ISO 4217). Raises `Invalid` at the field."""
    code = str(text).strip().upper()
    if len(code) != 3 or not code.isascii() or not code.isalpha():
        raise Invalid.at(field, "Give a currency's code of three letters, such as USD.")
    return code
