/** The rule of `npm run check` about the beginnings of texts in Python. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textProblems } from '../tools/python-texts.js';

for (const source of [
  '"""What a worker is."""\n',
  'def run():\n    """\n    Who runs it.\n    """\n',
  'x = 1\n\n# Those of a batch.\ny = 2\n',
  'class A:\n    def test_what_is_refused(self):\n        pass\n',
]) {
  test(`a text with a riddling beginning is refused: ${JSON.stringify(source)}`, () => {
    const problems = textProblems('a.py', source);
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.match(String(problems[0]), /^a\.py:\d: a text begins with "\w+"/);
  });
}

test('other beginnings, words inside a text and the second line of a comment are allowed', () => {
  const source = [
    '"""A worker, which is a process. What it does is below."""',
    '# The calls of a batch, and',
    '# Those of another.',
    'whose = "Of"  # Whoever',
    'def test_a_call_that_fails(): pass',
  ].join('\n');
  assert.deepEqual(textProblems('a.py', source), []);
});
