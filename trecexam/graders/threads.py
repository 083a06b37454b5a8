"""Several threads at once on a CPU, among which torch's threads are parted.

The number of torch's threads decides how a product's sums are cut: on an Intel Xeon with AMX, one thread and
two gave other bits in bfloat16. Batches side by side that have a thread each do not depend on the number, nor
wait for one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

#: torch's number of threads is the process's: who parts them has them alone.
_parting = Lock()


@contextmanager
def several_at_once(most: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A pool of as many threads as torch has, in which torch has one each.

    Args:
        most: threads of the pool at most; torch's are parted evenly among them.
    """
    import torch

    with _parting:
        threads = torch.get_num_threads()
        at_once = min(most or threads, threads)
        torch.set_num_threads(threads // at_once)
        # A new thread has torch's number once it has asked for it.
        pool = ThreadPoolExecutor(at_once, initializer=torch.get_num_threads)
        try:
            yield pool
        finally:
            torch.set_num_threads(threads)
            # After Ctrl-C what is not begun is left.
            pool.shutdown(cancel_futures=True)
