"""A TCP proxy with faults: it stalls, closes or resets its connections when it is told to.

As a program: proxy.py HOST:PORT [FILE] prints its own address (into FILE, if given), resets all
connections at SIGUSR1, refuses new ones from SIGUSR2 to the next SIGUSR1, and ends at SIGTERM.
"""

import select
import signal
import socket
import struct
import sys
import threading

BLOCK = 64 << 10


class Connection(threading.Thread):
    """Two sockets and the bytes between them. Only its own thread touches them: a close while another
    one waits in a system call would take effect when that returns, and so perhaps never."""

    def __init__(self, proxy, client, server):
        super().__init__(daemon=True)
        self.proxy = proxy
        self.peer = {client: server, server: client}
        self.waiting = {client: b"", server: b""}  # to be sent there
        self.ended = set()  # has sent its last byte
        self.reset = None
        self.waker, self.woken = socket.socketpair()
        for s in self.peer:
            s.setblocking(False)
        self.start()

    def wake(self):
        try:
            self.waker.send(b"x")
        except OSError:
            pass  # it has ended by itself

    def cut(self, reset):
        self.reset = reset
        self.wake()
        self.join()

    def run(self):
        try:
            while self.reset is None and len(self.ended) < 2:
                self.step()
        except OSError:
            pass
        for s in self.peer:
            if self.reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.woken.close()
        self.waker.close()

    def step(self):
        flows = self.proxy.flows
        readers = [s for s in self.peer if flows and s not in self.ended and not self.waiting[self.peer[s]]]
        writers = [s for s in self.peer if flows and self.waiting[s]]
        readable, writable, _ = select.select([*readers, self.woken], writers, [])
        for s in readable:
            if s is self.woken:
                s.recv(BLOCK)
            else:
                self.take(s, s.recv(BLOCK))
        for s in writable:
            self.waiting[s] = self.waiting[s][s.send(self.waiting[s]) :]

    def take(self, source, data):
        self.waiting[self.peer[source]] = data
        if not data:
            self.ended.add(source)
            self.peer[source].shutdown(socket.SHUT_WR)


class Proxy:
    """Passes bytes between one client and the server, until it is told otherwise."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.flows = True
        self.refuses = False
        self.lock = threading.Lock()
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            server = socket.create_connection(self.target)
            with self.lock:
                self.connections.append(Connection(self, client, server))

    def stall(self, stalled):
        self.flows = not stalled
        with self.lock:
            for connection in self.connections:
                connection.wake()

    def cut(self, reset):
        """Ends all connections; with a reset, what is under way is lost on both sides."""
        with self.lock:
            connections, self.connections = self.connections, []
        for connection in connections:
            connection.cut(reset)
        self.flows = True

    def close(self):
        self.cut(reset=True)
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self.listener.close()


def main():
    proxy = Proxy(sys.argv[1])
    signals = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
    with open(sys.argv[2], "w") if len(sys.argv) > 2 else sys.stdout as out:
        print(proxy.address, file=out, flush=True)
    while (signo := signal.sigwait(signals)) != signal.SIGTERM:
        proxy.refuses = signo == signal.SIGUSR2
        proxy.cut(reset=True)


if __name__ == "__main__":
    # Before the proxy's thread, so that it inherits this.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM])
    main()
