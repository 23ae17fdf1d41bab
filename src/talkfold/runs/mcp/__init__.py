"""MCP servers as tools: the Model Context Protocol over the official SDK, which ``talkfold[mcp]`` brings.

```python
async with McpServer.stdio("python", "weather.py") as weather, McpServer.http("http://127.0.0.1:8000/mcp") as shop:
    box = Toolbox(my_tool, weather, shop)
```
"""

from __future__ import annotations

from importlib.util import find_spec

if any(find_spec(name) is None for name in ("mcp", "mcp_types", "jsonschema")):
    raise ImportError("talkfold.runs.mcp needs the MCP SDK, version 2.3 or newer: pip install 'talkfold[mcp]'")

from .confirm import ConfirmMcp
from .server import McpOptions, McpServer

__all__ = ("ConfirmMcp", "McpOptions", "McpServer")
