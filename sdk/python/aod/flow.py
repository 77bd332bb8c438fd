"""Flows: graphs of nodes over one shared state. Standard library only; it runs without AOD.

    class Draft(Node):
        def prep(self, shared):
            return shared["topic"]

        def exec(self, topic):
            return aod.handoff("writer", topic=topic).output["text"]

        def post(self, shared, prep_res, exec_res):
            shared["draft"] = exec_res

    draft, review = Draft(max_retries=3, wait=1), Review()
    draft >> review
    review - "again" >> draft
    Flow(draft).run(shared)

A node's prep reads the shared state, exec works (and is tried again), post writes and returns
the action: the next node is the one that the action leads to. None is the action "default". A
flow is a node, too. A flow ends where an action leads nowhere; it warns where others do.
Flow(draft).run() begins with an empty state, and returns it as it is at the end.

Handoffs that nodes make are made once: if the run's container dies and AOD makes another
attempt (`retries` in agent.yaml), calls that had succeeded give their results again. That
needs nodes that ask for the same again, without a clock or chance in their arguments.
"""

from aod.flowfile import Declared, from_dict, to_dict, to_yaml
from aod.flownodes import (
    AsyncBatchNode, AsyncNode, AsyncParallelBatchNode, BaseNode, BatchNode, End, FlowError, Node,
)
from aod.flowpicture import to_mermaid
from aod.flowscope import Scope, capsule
from aod.flowunits import (
    AgentNode, ModelNode, ToolNode, UnitNode, UniversalAgentNode, UniversalModelNode, UniversalToolNode, call,
)
from aod.flowwalk import AsyncBatchFlow, AsyncFlow, AsyncParallelBatchFlow, BatchFlow, Flow

__all__ = [
    "AgentNode",
    "AsyncBatchFlow",
    "AsyncBatchNode",
    "AsyncFlow",
    "AsyncNode",
    "AsyncParallelBatchFlow",
    "AsyncParallelBatchNode",
    "BaseNode",
    "BatchFlow",
    "BatchNode",
    "Declared",
    "End",
    "Flow",
    "FlowError",
    "ModelNode",
    "Node",
    "Scope",
    "ToolNode",
    "UnitNode",
    "UniversalAgentNode",
    "UniversalModelNode",
    "UniversalToolNode",
    "call",
    "capsule",
    "from_dict",
    "to_dict",
    "to_mermaid",
    "to_yaml",
]
