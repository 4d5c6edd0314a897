import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PYTHON_PATH, stuckAt } from '../../../../supervisor/runtimes/python/python.js';

const OURS = `  File "${PYTHON_PATH}/banana_worker/main.py", line 69 in run\n`;
const OTHERS = `Timeout (0:00:07)!
Thread 0x00007f2 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/app/helper.py", line 9 in look

`;
const MAIN = 'Thread 0x00007f1 (most recent call first):\n';

for (const [what, left, told] of [
  ['a line of the app', '  File "/app/my app.py", line 3 in <module>\n', 'at /app/my app.py:3'],
  [
    'a package that the app has called',
    '  File "/env/lib/python3.12/site-packages/torch/cuda.py", line 88 in init\n  File "/app/net.py", line 5 in load\n',
    'at /app/net.py:5, in init of /env/lib/python3.12/site-packages/torch/cuda.py:88',
  ],
  [
    'no line of the app',
    '  File "<frozen importlib._bootstrap>", line 2 in find\n',
    'outside the app, in find of <frozen importlib._bootstrap>:2',
  ],
] as const)
  test(`a start that hung in ${what} is described by the main thread's stack`, () => {
    const sentence = `It hung ${told}, while native code held the GIL.`;
    assert.equal(stuckAt(`${OTHERS}${MAIN}${left}${OURS}`), sentence);
    assert.equal(stuckAt(`${MAIN}${left}${OURS}`), sentence);
  });

test('stuckAt is empty without stacks', () => {
  assert.equal(stuckAt(''), '');
  assert.equal(stuckAt('Timeout (0:00:07)!\n'), '');
});
