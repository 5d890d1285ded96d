# SPDX-License-Identifier: Apache-2.0
# Renders a chat template with Jinja, as transformers does, so that src/model/tokenizer/chat_template.cpp sees what it puts around
# messages.
#
#   python -I render_chat.py < {"template": ..., "tokens": {"bos_token": ...},
#                               "asked": [{"messages": [{role, content}, ...], "add_generation_prompt": bool}, ...]}
#
# Prints [{"text": ...} or, where the template refuses, {"error": text}, ...]. Templates come with models: they run in
# Jinja's sandbox, and for ten seconds at most. There is no strftime_now, so that a template that names today's date
# takes the one that it has for this case: a prompt is not to change from day to day.
import json
import signal
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class GenerationBlocks(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %} marks answers for training masks; here it is what it holds."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def main():
    signal.alarm(10)
    asked = json.load(sys.stdin)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, GenerationBlocks])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = refuse

    def answer(messages, add_generation_prompt):
        try:
            return {"text": environment.from_string(asked["template"]).render(
                messages=messages, add_generation_prompt=add_generation_prompt, tools=None, documents=None, **asked["tokens"])}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    print(json.dumps([answer(**one) for one in asked["asked"]]))


main()
