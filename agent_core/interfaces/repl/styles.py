"""The colors of the prompt: the sixteen of the terminal, for a dark screen, and what differs on a light one."""

DARK = {
    "mark": "bold ansicyan",
    "mark.debug": "bold ansiyellow",
    "bar": "ansibrightblack",
    "bar.name": "ansicyan",
    "bar.running": "ansicyan",
    "bar.near": "ansiyellow",
    "bar.full": "bold ansired",
    "bar.alarm": "bold ansiwhite bg:ansired",
    "bar.hint": "ansiyellow",
    "live.thought": "ansibrightblack",
    "live.call": "ansicyan",
    "live.printed": "ansibrightblack",
    "live.question": "bold ansiyellow",
    "auto-suggestion": "ansibrightblack",
}
LIGHT = {
    "mark": "bold ansiblue",
    "mark.debug": "bold ansimagenta",
    "bar.name": "ansiblue",
    "bar.near": "ansimagenta",
    "bar.hint": "ansimagenta",
    "live.call": "ansiblue",
    "live.question": "bold ansimagenta",
}
