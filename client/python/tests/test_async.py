from __future__ import annotations

import asyncio
import threading
from typing import Any, Awaitable, Callable, List

from quittance import AsyncClient, AsyncRun, Call, Paused, current_call

from .case import FakeCase
from .fake import Handler


class Asynchronous(FakeCase):
    def within(self, work: Callable[[AsyncRun], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with self.async_client() as client:
                return await work(await client.open("r", agent="bot"))

        return asyncio.run(main())

    def test_a_coroutine_is_performed_in_the_loop(self) -> None:
        async def work(run: AsyncRun) -> None:
            loop = asyncio.get_running_loop()

            async def pay(call: Call) -> str:
                self.assertIs(asyncio.get_running_loop(), loop)
                self.assertIs(current_call(), call)
                return "po_1"

            self.assertEqual((await run.do("pay", {"n": 1}, pay)).result, "po_1")
            self.assertEqual((await run.do("pay", {"n": 2}, lambda call: pay(call))).result, "po_1")
            self.assertEqual((await run.do("pay", {"n": 3}, lambda call: threading.current_thread() is not threading.main_thread())).result, True)

        self.within(work)

    def test_a_cancelled_call_is_recorded_as_unknown(self) -> None:
        async def work(run: AsyncRun) -> None:
            stands = asyncio.Event()

            async def pay(call: Call) -> None:
                stands.set()
                await asyncio.Event().wait()

            calling = asyncio.ensure_future(run.do("pay", {"n": 1}, pay))
            await stands.wait()
            calling.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await calling
            await asyncio.get_running_loop().run_in_executor(None, self.fake.wait_for, lambda: self.fake.bodies("finish"))

        self.within(work)
        self.assertEqual(self.fake.bodies("finish")[0]["outcome"], "unknown")

    def test_a_thread_of_a_cancelled_call_is_waited_for_and_recorded(self) -> None:
        async def work(run: AsyncRun) -> None:
            stands, go_on = threading.Event(), threading.Event()

            def pay(call: Call) -> str:
                stands.set()
                go_on.wait()
                return "po_1"

            loop = asyncio.get_running_loop()
            calling = asyncio.ensure_future(run.do("pay", {"n": 1}, pay))
            await loop.run_in_executor(None, stands.wait)
            calling.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await calling
            go_on.set()
            await loop.run_in_executor(None, self.fake.wait_for, lambda: self.fake.bodies("finish"))

        self.within(work)
        self.assertEqual(self.fake.bodies("finish")[0]["result"], "po_1")

    def test_a_call_cancelled_before_its_begin_was_answered_is_the_same_call_the_next_time(self) -> None:
        go_on = threading.Event()

        def held(handler: Handler) -> bool:
            go_on.wait()
            return True

        async def work(run: AsyncRun) -> None:
            self.fake.script("begin", held)
            loop = asyncio.get_running_loop()
            calling = asyncio.ensure_future(run.do("pay", {"n": 1}, lambda call: self.fail("performed")))
            await loop.run_in_executor(None, self.fake.wait_for, lambda: self.fake.bodies("begin"))
            calling.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await calling
            go_on.set()
            await run.release()  # waits for the begin
            again = await run._client.open("r", agent="bot")
            del again
            out = await AsyncRunOf(run).do("pay", {"n": 1}, lambda call: "po_1")
            self.assertEqual((out.result, out.replayed), ("po_1", False))

        class AsyncRunOf:
            """The same run, held again by the same process."""

            def __init__(self, run: AsyncRun) -> None:
                run._run._acquire()
                self.do = run.do

        self.within(work)
        self.assertEqual(len({b["attempt_id"] for b in self.fake.bodies("begin")}), 1)
        self.assertEqual([b["occurrence"] for b in self.fake.bodies("begin")], [1, 1])

    def test_the_deadline_ends_a_coroutine(self) -> None:
        self.fake.within = 100

        async def work(run: AsyncRun) -> None:
            async def pay(call: Call) -> None:
                await asyncio.Event().wait()

            with self.assertRaises(Paused) as caught:
                await run.do("pay", {"n": 1}, pay)
            self.assertIsInstance(caught.exception.__cause__, TimeoutError)

        self.within(work)

    def test_many_calls_at_once(self) -> None:
        async def work(run: AsyncRun) -> List[Any]:
            async def pay(call: Call) -> Any:
                await asyncio.sleep(0)
                return call.arguments["n"]

            return [o.result for o in await asyncio.gather(*[run.do("pay", {"n": i}, pay) for i in range(100)])]

        self.assertEqual(self.within(work), list(range(100)))

    def test_a_run_whose_opening_was_cancelled_is_given_back(self) -> None:
        go_on = threading.Event()

        def held(handler: Handler) -> bool:
            go_on.wait()
            return True

        self.fake.script("open", held)

        async def main() -> None:
            client = AsyncClient(self.fake.url, "t", spool=self.spool)
            opening = asyncio.ensure_future(_open(client))
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, self.fake.wait_for, lambda: self.fake.bodies("open"))
            opening.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await opening
            go_on.set()
            await loop.run_in_executor(None, self.fake.wait_for, lambda: self.fake.bodies("release"))
            await client.close()

        asyncio.run(main())


async def _open(client: AsyncClient) -> AsyncRun:
    return await client.open("r", agent="bot")
