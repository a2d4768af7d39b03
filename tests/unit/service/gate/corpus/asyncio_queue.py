import asyncio


async def producer(queue, n):
    for i in range(n):
        await queue.put(i)
        await asyncio.sleep(0)
    await queue.put(None)


async def main():
    queue = asyncio.Queue(maxsize=2)
    task = asyncio.create_task(producer(queue, 5))
    while (item := await queue.get()) is not None:
        print(f"{item=} {'even' if item % 2 == 0 else 'odd'}")
    await task


asyncio.run(main())
