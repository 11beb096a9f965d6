"""Plans with one machine per task, as they are compared with those that share machines."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import Unsupported
from headrace.model.arrays import Ints
from headrace.model.sized import Provisioned
from headrace.provision.offer import Offer
from headrace.provision.one_each import Shop, market_of, plan_one_each
from headrace.solve.counts.dop import cheapest, fastest


def rent_cheapest_alone(offer: Offer, factor: float) -> Provisioned | None:
    """The cheapest plan of one machine per task that carries a factor; None if there is none."""
    return _rent_alone(offer, lambda shop: cheapest(shop.market, factor))


def rent_fastest_alone(offer: Offer, budget: float) -> Provisioned | None:
    """The fastest plan of one machine per task within a budget; None if there is none."""
    return _rent_alone(offer, lambda shop: fastest(shop.market, budget))


def _rent_alone(offer: Offer, choose: Callable[[Shop], Ints | None]) -> Provisioned | None:
    try:
        shop = make_shop(offer)
        machines = choose(shop)
    except Unsupported:
        return None
    return None if machines is None else plan_one_each(shop, machines)


def make_shop(offer: Offer) -> Shop:
    """The same market for one machine per task."""
    if offer.load.copied:
        raise Unsupported("rates depend on counts")
    return Shop(offer.workload, offer.load, market_of(offer.load), offer.kinds, offer.notes)
