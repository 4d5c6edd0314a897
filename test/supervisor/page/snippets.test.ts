/** The call as code for other programs, as text; test/e2e/page-code.test.ts runs it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import {
  curlOf,
  fetchOf,
  forSnippets,
  pythonOf,
  type CallRequest,
} from '../../../supervisor/page/try/snippets.js';

const JSON_TYPE = [['Content-Type', 'application/json']] as const;
const URL = 'http://localhost:8000/';

const request = (changes: Partial<CallRequest> = {}): CallRequest => ({
  url: URL,
  headers: JSON_TYPE,
  body: { kind: 'text', text: `{"it's":[true,null]}` },
  needsKey: false,
  isStream: false,
  ...changes,
});
const FILE = { name: 'a cat.png', type: 'image/png' };

for (const [title, write, changes, expected] of [
  [
    'curl, JSON',
    curlOf,
    {},
    [`curl ${URL}`, `-H 'Content-Type: application/json'`, String.raw`-d '{"it'\''s":[true,null]}'`].join(
      ' \\\n  ',
    ),
  ],
  [
    'curl, the key as a placeholder',
    curlOf,
    { needsKey: true, headers: [], body: { kind: 'none' } },
    [`curl ${URL}`, `-H 'X-Banana-Api-Key: YOUR_API_KEY'`, '-X POST'].join(' \\\n  '),
  ],
  [
    'curl, a file',
    curlOf,
    { headers: [['Content-Type', 'image/png']], body: { kind: 'file', ...FILE } },
    [`curl ${URL}`, `-H 'Content-Type: image/png'`, `--data-binary '@a cat.png'`].join(' \\\n  '),
  ],
  [
    'curl, a form',
    curlOf,
    { headers: [], body: { kind: 'form', field: 'image', name: 'a;b.png', type: 'image/png' } },
    [`curl ${URL}`, `-F 'image=@"a;b.png";type=image/png'`].join(' \\\n  '),
  ],
  [
    'curl, a stream',
    curlOf,
    { isStream: true, headers: [['Accept', 'text/event-stream']], body: { kind: 'none' } },
    [`curl -N ${URL}`, `-H 'Accept: text/event-stream'`, '-X POST'].join(' \\\n  '),
  ],
  [
    'curl, a text that curl would take for a file',
    curlOf,
    { headers: [], body: { kind: 'text', text: '@home' } },
    [`curl ${URL}`, '--data-raw @home'].join(' \\\n  '),
  ],
  [
    'fetch, JSON',
    fetchOf,
    {},
    `const response = await fetch('${URL}', {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
  },
  body: JSON.stringify({"it's":[true,null]}),
});
console.log(response.status, await response.text());`,
  ],
  [
    'Python, JSON',
    pythonOf,
    { needsKey: true },
    `import requests

response = requests.post(
    "${URL}",
    headers={"X-Banana-Api-Key": "YOUR_API_KEY"},
    json={"it's":[True,None]},
)
print(response.status_code, response.text)`,
  ],
  [
    'Python, words inside of texts',
    pythonOf,
    { body: { kind: 'text', text: String.raw`{"true":"null \"x\" \/"}` } },
    `import requests

response = requests.post(
    "${URL}",
    json={"true":"null \\"x\\" /"},
)
print(response.status_code, response.text)`,
  ],
] satisfies readonly (readonly [string, (request: CallRequest) => string, Partial<CallRequest>, string])[])
  test(title, () => assert.equal(write(request(changes)), expected));

for (const [title, text] of [
  ['a number that JavaScript would round', '{"id":12345678901234567890}'],
  ['a key that JavaScript would take for a prototype', '{"__proto__":1}'],
  ['text that is no JSON', "it's"],
] as const)
  test(`fetch: ${title} stays text`, () => {
    const [, literal = ''] = /body: ('.*'),/.exec(fetchOf(request({ body: { kind: 'text', text } }))) ?? [];
    assert.equal(runInNewContext(literal), text);
  });

test('a long input is read from a file', () => {
  const long = forSnippets(request({ body: { kind: 'text', text: JSON.stringify('x'.repeat(9000)) } }));
  assert.match(curlOf(long), /--data-binary @input\.json$/);
  assert.match(pythonOf(long), /data=open\("input\.json", "rb"\)/);
  assert.match(fetchOf(long), /body: await readFile\('input\.json'\)/);
});
