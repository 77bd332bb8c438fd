import aod

from .notes import Note, unreadable

NOTES = "notes.md"
REFUSED = "invalid_input"  # a picture that the unit doesn't take, or can't read


def execute(payload: dict) -> dict:
    calls = {aod.start("au-ocr", files={"stdin": aod.input_path(name)}): name for name in payload["pictures"]}
    notes = [note(name, call, payload["sure"]) for call, name in calls.items()]
    with open(aod.output_path(NOTES), "w", encoding="utf-8") as file:
        file.write("\n".join(note.markdown for note in notes))
    return {
        "read": sum(note.readable for note in notes),
        "words": sum(note.words for note in notes),
        "doubtful": sum(note.doubtful for note in notes),
        "notes": NOTES,
    }


def note(name, call, sure):
    """Return what is to be said of a picture; one that the unit refuses is said to be unreadable."""
    try:
        return Note(name, call.result().output, sure)
    except aod.HandoffError as error:
        if error.kind != REFUSED:
            raise
        aod.log("a picture can't be read")
        return unreadable(name)
