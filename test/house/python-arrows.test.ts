/** Imports inside the worker in Python run one way: the rule that `npm run check` applies refuses others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importProblems } from '../tools/python-imports.js';

const problemsOf = (files: Record<string, string>): string[] =>
  importProblems(new Map(Object.entries(files)));

const UP =
  'banana_worker/process/up.py imports banana_worker/run/call.py: banana_worker/process stands below';

for (const [form, source] of [
  ['of a module', 'import banana_worker.run.call\n'],
  ['of a name', 'from banana_worker.run.call import Call\n'],
  ['of a module by its name', 'from banana_worker.run import call\n'],
  ['relative to its own room', 'from ..run.call import Call\n'],
  ['over several lines', 'from banana_worker.run.call import (\n    Call,\n    Batch,\n)\n'],
  ['inside a function', 'def later():\n    from banana_worker.run.call import Call\n'],
  ['by the name of a standard one', 'module = import_standard("banana_worker.run.call")\n'],
]) {
  test(`an import upwards is refused: ${form}`, () => {
    const problems = problemsOf({
      'banana_worker/process/up.py': source as string,
      'banana_worker/run/call.py': '',
    });
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.ok(problems[0]?.startsWith(UP), problems[0]);
  });
}

test('an import downwards, of the same room and of other packages is allowed', () => {
  const source = 'import os\nfrom banana_worker.process.channel import Channel\nfrom .other import a, b\n';
  const files = {
    'banana_worker/run/call.py': source,
    'banana_worker/run/other.py': '',
    'banana_worker/process/channel.py': '',
  };
  assert.deepEqual(problemsOf(files), []);
});

test('files that import each other in a circle are refused, inside one room and in a function, too', () => {
  const problems = problemsOf({
    'banana_worker/run/a.py': 'from .b import b\n',
    'banana_worker/run/b.py': 'def b():\n    from .c import c\n',
    'banana_worker/run/c.py': 'from banana_worker.run.a import a\n',
  });
  const path = ['a', 'b', 'c', 'a'].map((name) => `banana_worker/run/${name}.py`).join(' -> ');
  assert.deepEqual(problems, [`imports in a circle: ${path}`]);
});

test('a file that is in no room is refused', () => {
  assert.match(
    problemsOf({ 'banana_worker/new.py': '' }).join(),
    /banana_worker\/new\.py is in none of PYTHON_ROOMS/,
  );
});
