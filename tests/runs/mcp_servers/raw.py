"""A hand-written MCP server over stdin and stdout that does whatever a test asks for. Needs nothing but Python.

    python raw.py [MODE …]

Modes change the start; what a call does is the name of its tool. With ``log=FILE`` each message that comes in is
written to that file, one a line, and ``start`` when it starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODES = set(sys.argv[1:])
LOG = next((Path(mode[4:]) for mode in MODES if mode.startswith("log=")), None)

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "x-kept": [1, None]}
NAMES = [
    "echo", "blocks", "failed", "coded", "mute", "die", "killed", "garbage_answer", "garbage", "huge", "endless",
    "slow", "deaf", "progress", "grow", "log", "error", "broken", "nan", "ask", "close_stdout", "orphan", "pid",
    "where", "asleep", "busy",
]  # fmt: skip
ANNOTATIONS = {"echo": {"readOnlyHint": True}, "grow": {"destructiveHint": False}, "die": {"destructiveHint": True}}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(text + "\n")


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


class Server:
    def __init__(self) -> None:
        self.tools = [
            {"name": name, "description": f"{name} it", "inputSchema": SCHEMA, "annotations": ANNOTATIONS.get(name, {})}
            for name in NAMES
        ]
        if "names" in MODES:
            self.tools = [
                {"name": name, "inputSchema": {"type": "object"}}
                for name in ("weather.get", "weather_get", "weather/get", "delegate_to_x", "x" * 70, "gr\u00fc\u00df")
            ] + [{"description": "no name"}, "no tool", {"name": "weather_get", "description": "second"}]  # type: ignore[list-item]
        self.asked = 0

    def listed(self, cursor: str | None) -> dict[str, Any]:
        """Pages of seven."""
        start = int(cursor or 0)
        page: dict[str, Any] = {"tools": self.tools[start : start + 7]}
        if start + 7 < len(self.tools):
            page["nextCursor"] = str(start + 7)
        return page

    def called(self, request: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        given = params.get("arguments") or {}
        token = params.get("_meta", {}).get("progressToken")
        match params["name"]:
            case "blocks":
                return json.loads(BLOCKS.read_text())
            case "failed":
                return {**text("it is raining"), "isError": True, "_meta": {"a": 1}}
            case "coded":
                return {**text("Error [timeout] upstream"), "isError": True}
            case "mute":
                return {"content": [{"type": "image", "data": "", "mimeType": "image/png"}], "isError": True}
            case "die":
                sys.stderr.write("the disk is full\ngiving up\n")
                sys.stderr.flush()
                os._exit(3)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "orphan":  # a child that keeps the pipes open, and then it dies
                subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
                os._exit(4)
            case "close_stdout":
                os.close(1)
                time.sleep(60)
            case "garbage_answer":
                sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request}, "result": "text"}}\n')
                sys.stdout.flush()
                return None
            case "garbage":
                sys.stdout.buffer.write(
                    b"hello\n\xff\xfe\n\n[]\n{}\n" + b'{"jsonrpc": "1.0", "id": 99999, "result": {}}\n'
                )
                return text("still here")
            case "huge":
                return text("x" * given["n"])
            case "endless":
                while True:
                    sys.stdout.write("x" * 2**20)
            case "slow":
                threading.Timer(0.3, lambda: say({"id": request, "result": text("slept")})).start()
                return None
            case "busy":
                say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
                return None
            case "deaf":
                return None
            case "progress":
                for step in range(1, 21):
                    params = {"progressToken": token, "progress": step, "total": 20, "message": f"step {step}"}
                    say({"method": "notifications/progress", "params": params})
                say({"method": "notifications/progress", "params": {"progressToken": "foreign", "progress": 1}})
                return text("done")
            case "grow":
                self.tools.append({"name": f"grown{len(self.tools)}", "inputSchema": {"type": "object"}})
                say({"method": "notifications/tools/list_changed"})
                return text("grown")
            case "log":
                for level in ("debug", "warning", "emergency"):
                    params = {"level": level, "logger": "db", "data": {"disk": level}}
                    say({"method": "notifications/message", "params": params})
                return text("logged")
            case "error":
                code, message = given["n"], {-32602: "n is odd", -32601: "no method"}.get(given["n"], "went wrong")
                if given["n"] == 1:
                    code, message = -32602, "Unknown tool: error"
                say({"id": request, "error": {"code": code, "message": message}})
                return None
            case "broken":
                return {"content": "no list"}
            case "nan":
                sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request}, "result": {{"content": [], "x": NaN}}}}\n')
                sys.stdout.flush()
                return None
            case "ask":
                for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping", "odd/method"):
                    self.asked += 1
                    say({"id": f"s{self.asked}", "method": method, "params": ASKED.get(method, {})})
                answers = [json.loads(sys.stdin.readline()) for _ in range(self.asked)]
                self.asked = 0
                return text(json.dumps(sorted(answers, key=lambda answer: answer["id"])))
            case "asleep":
                time.sleep(60)
            case "where":
                return {"content": [], "structuredContent": {"cwd": str(Path.cwd()), "env": dict(os.environ)}}
            case "pid":
                return text(str(os.getpid()))
        return {"content": [], "structuredContent": params.get("arguments")}

    def hear(self, message: dict[str, Any]) -> None:
        request, params = message.get("id"), message.get("params") or {}
        match message.get("method"):
            case "initialize":
                capabilities = {"tools": {"listChanged": True}, "logging": {}}
                info = {"name": "raw", "version": "1"}
                version = "1999-01-01" if "old" in MODES else params["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
                say({"id": request, "result": result})
            case "tools/list":
                if "die_listing" in MODES:
                    os._exit(5)
                say({"id": request, "result": self.listed(params.get("cursor"))})
            case "tools/call":
                if (result := self.called(request, params)) is not None:
                    say({"id": request, "result": result})


BLOCKS = Path(__file__).with_name("blocks.json")

ASKED: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 5,
    },
    "elicitation/create": {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}},
}


def main() -> None:
    note("start")
    if "stubborn" in MODES:  # ends neither with its input nor with SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "stubborn" in MODES or "lingers" in MODES:
        threading.Thread(target=time.sleep, args=(60,)).start()
    if "crash" in MODES:
        sys.exit("no licence")
    if "crash_later" in MODES and LOG is not None and LOG.read_text().count("start") > 1:
        sys.exit("no licence any more")
    if "silent" in MODES:
        time.sleep(60)
    if "chatty" in MODES:
        print("Welcome to the server!", flush=True)  # noqa: T201
    if "noise" in MODES:
        while True:
            print("garbage", flush=True)  # noqa: T201
            time.sleep(0.01)
    server = Server()
    for line in sys.stdin:
        note(line.strip())
        server.hear(json.loads(line))


main()
