"""An MCP server on stdin and stdout that does what its tools are called."""
import json, os, sys, time

N = 0
TOOLS = ["count", "env", "echo", "die", "hang", "noise", "flood", "deep", "twice", "strange", "forks", "deaf", "many", "ask", "sealed", "killed", "bomb", "endless"]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(id, text, **more):
    say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}], **more}})


def call(id, name, arguments):
    global N
    if name == "count":
        N += 1
        answer(id, str(N))
    elif name == "env":
        answer(id, os.environ.get(arguments["name"], "unset"))
    elif name == "echo":
        answer(id, json.dumps(arguments))
    elif name == "sealed":
        with open("/proc/net/dev") as f:
            interfaces = [line.split(":")[0].strip() for line in f if ":" in line]
        answer(id, "%s %s" % (os.getuid() != 0, ",".join(interfaces)))
    elif name == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "killed":
        os.kill(os.getpid(), 9)
    elif name == "bomb":  # one line of 1 GiB
        try:
            for _ in range(1 << 10):
                sys.stdout.write("x" * (1 << 20))
            sys.stdout.write("\n")
        except OSError:
            os._exit(4)
    elif name == "endless":  # messages without end
        while True:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * (1 << 20)}})
    elif name == "hang":
        time.sleep(10000)
    elif name == "noise":
        sys.stdout.write("plain text\n{\n\n[1]\n")
        answer(id, "after the noise")
    elif name == "flood":
        while True:
            sys.stdout.write("x" * (1 << 20))
    elif name == "deep":
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":%s%s}\n' % (id, "[" * 10000, "]" * 10000))
        sys.stdout.flush()
    elif name == "twice":
        answer(id, "once")
        answer(id, "twice")
    elif name == "strange":
        answer(9999, "nobody asked")
        answer(id, "mine")
    elif name == "forks":
        while True:
            try:
                os.fork()
            except OSError:
                pass
    elif name == "deaf":
        answer(id, "I don't listen any more")
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(10000)
    elif name == "many":
        page = [{"name": "t%d" % n, "inputSchema": {"type": "object"}} for n in range(100000)]
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": page}})
    elif name == "ask":
        say({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {"messages": []}})
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "told"}})
        reply = json.loads(sys.stdin.readline())
        answer(id, json.dumps(reply.get("result")))


for line in sys.stdin:
    m = json.loads(line)
    method = m.get("method")
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}})
    elif method == "tools/list" and os.environ.get("MODE") == "many":
        say({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": [{"name": "t%d" % n, "inputSchema": {"type": "object"}} for n in range(100000)]}})
    elif method == "tools/list" and os.environ.get("MODE") == "deep":
        schema = '{"type":"object","properties":{"x":' * 10000 + "{}" + "}}" * 10000
        sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":%s}]}}\n' % (json.dumps(m["id"]), schema))
        sys.stdout.flush()
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": [{"name": t, "description": t + " it", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}} for t in TOOLS]}})
    elif method == "tools/call":
        call(m["id"], m["params"]["name"], m["params"].get("arguments") or {})
    elif method and "id" in m:
        say({"jsonrpc": "2.0", "id": m["id"], "result": {}})
