"""Runs Pulumi programs written in Python where Pulumi's own language host is missing.

The engine starts a language host for a project with `runtime: python`, asks it which packages the program needs, and
has it run the program. This one speaks the same protocol (`pulumirpc.LanguageRuntime`) through the stubs that come with
Pulumi's Python SDK. It deliberately generates no code and attaches no debugger; docs/stand-ins.md lists what it lacks.
"""
