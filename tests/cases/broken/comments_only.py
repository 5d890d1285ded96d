# task: tests/cases/tasks/swish.py
# expect: compile_error @compile
# why: a file of comments and nothing else
