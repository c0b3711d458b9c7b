"""Pays the invoices of a file, each exactly once, however often it is killed and started
again.

    QUITTANCE_URL=http://127.0.0.1:8080 QUITTANCE_TOKEN=... PYTHONPATH=client/python \\
      python3 examples/invoices-python/agent.py --run payday-2026-06 --bank http://127.0.0.1:9090 invoices.json

The file holds a JSON list of {"vendor", "invoice", "amount", "currency"}, amounts in the
currency's smallest unit. The agent exits with 3 when a person has to find something out
first; started again, it goes on where it stood.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import sys
from typing import Any, Dict, List

import bank
import quittance

#: Tells a supervisor that starting again at once is of no use.
EXIT_PAUSED = 3

log = logging.getLogger("agent")


def pay_all(run: quittance.Run, tool: str, url: str, invoices: List[Dict[str, Any]], wait: bool) -> None:
    paid = (run.state or {"paid": 0})["paid"]  # how far the agent came
    while paid < len(invoices):
        try:
            pay_one(run, tool, url, invoices[paid])
        except quittance.Paused as paused:
            if not wait:
                raise
            log.info("%s", paused)
            run.wait()
            continue  # the same call again: it is replayed, or cleared
        paid += 1
        run.checkpoint(paid, {"paid": paid})
    run.close()


def pay_one(run: quittance.Run, tool: str, url: str, invoice: Dict[str, Any]) -> None:
    order = {"reference": invoice["invoice"], "payee": invoice["vendor"], "amount": invoice["amount"], "currency": invoice["currency"]}
    try:
        out = run.do(tool, invoice, functools.partial(bank.pay, url, order))
    except quittance.Refused as refused:
        # A definite no is an answer: the invoice is left for a person's list.
        log.info("%s was refused: %s", invoice["invoice"], refused.reason)
    except quittance.Cancelled:
        log.info("%s was stopped by a person", invoice["invoice"])
    else:
        log.info("%s is paid as %s (replayed: %s)", invoice["invoice"], out.reference, out.replayed)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("invoices")
    parser.add_argument("--run", required=True, help="the run's own name; the same name goes on with the same run")
    parser.add_argument("--bank", default="http://127.0.0.1:9090", help="the bank's address")
    parser.add_argument("--tool", default="send_payment", help="what the policy calls a payment")
    parser.add_argument("--spool", help="where outcomes wait that cannot be delivered")
    parser.add_argument("--lease", type=int, default=60, help="seconds that a dead agent keeps its run")
    parser.add_argument("--wait", action="store_true", help="wait for a person instead of exiting")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with open(options.invoices, encoding="utf-8") as f:
        invoices = json.load(f)
    client = quittance.Client(os.environ["QUITTANCE_URL"], os.environ["QUITTANCE_TOKEN"], spool=options.spool)
    try:
        with client.open(options.run, agent="invoice-agent", lease_seconds=options.lease, wait_held=options.lease + 5) as run:
            run.release_on_signal()
            log.info("the run is open")
            pay_all(run, options.tool, options.bank, invoices, options.wait)
    except quittance.RunClosed:
        log.info("the run is finished already")
    except quittance.Paused as paused:
        log.info("%s", paused)
        return EXIT_PAUSED
    finally:
        client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
