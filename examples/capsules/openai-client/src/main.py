"""Everything that a program does with OpenAI's client, in a sandbox without a key and without a
network. Nothing here knows of AOD: the client takes address and key from its environment."""

import json
import math

import openai

MODEL = "gpt-4o-mini"
EMBEDDINGS = "text-embedding-3-small"
TIDE = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "Says how high the water is at a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def execute(payload):
    client = openai.OpenAI()
    place = payload["place"]
    chat = client.chat.completions.create(model=MODEL, messages=[says(f"Describe {place} in a sentence.")])
    pieces = streamed(client, place)
    return {
        "chat": chat.choices[0].message.content,
        "streamed": "".join(pieces),
        "chunks": len(pieces),
        "tool": with_tool(client, place),
        "responses": client.responses.create(model=MODEL, input=f"Name a fish of {place}.", store=False).output_text,
        "likeness": likeness(client, place, place),
        "models": sorted(model.id for model in client.models.list()),
        "refused": refused(client),
        "tokens": chat.usage.total_tokens,
    }


def says(text):
    return {"role": "user", "content": text}


def streamed(client, place):
    """The pieces in which a text came."""
    stream = client.chat.completions.create(model=MODEL, messages=[says(f"A poem about {place}.")], stream=True)
    pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    return [piece for piece in pieces if piece]


def with_tool(client, place):
    """Let the model call a function, tell it the result, and return its answer."""
    messages = [says(f"How high is the water at {place}?")]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=[TIDE]).choices[0].message
    call = first.tool_calls[0]
    asked_for = json.loads(call.function.arguments)["place"]
    messages += [first, {"role": "tool", "tool_call_id": call.id, "content": "2 m"}]
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[TIDE])
    return {"asked_for": asked_for, "answer": answer.choices[0].message.content}


def likeness(client, one, other):
    """The cosine between two texts' embeddings."""
    a, b = (item.embedding for item in client.embeddings.create(model=EMBEDDINGS, input=[one, other]).data)
    return round(sum(x * y for x, y in zip(a, b)) / (math.hypot(*a) * math.hypot(*b)), 6)


def refused(client):
    """What the client raises for a model that this unit may not ask."""
    try:
        client.chat.completions.create(model="gpt-4o", messages=[says("Hello")])
    except openai.APIStatusError as error:
        return f"{type(error).__name__} {error.status_code}"
    return "nobody refused it"
