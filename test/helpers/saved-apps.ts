/** The apps that tests of `--watch` save, in each language: what has one name does the same in all of them. */
import { CUES_MODULE, PACKAGE } from './edited-app.js';
import type { Language } from './runtimes.js';
import { ROOT } from './server.js';

/** A mistake in an app, the app's text, and the line of the log. */
export type Mistake = readonly [what: string, broken: string, told: RegExp];

export interface SavedApps {
  /** Name of the app's file. */
  readonly file: string;
  /** Answers with its version. */
  version(version: number): string;
  /** Two files: the app answers with the text of the other one and the number of times that its init ran. */
  inParts(answer: number): {
    readonly app: readonly [string, string];
    readonly part: readonly [string, string];
  };
  /** Echoes a WebSocket, with its version. */
  talking(version: number): string;
  /** Its init notes that it began, and waits for a cue. */
  slow(version: number, cue: string): string;
  /** A call waits for the cue that it names, and answers whether its signal was aborted. */
  waiting(version: number): string;
  /** A handler for each of these routes, which waits for a cue. */
  routes(routes: readonly string[]): string;
  /** Has this config, and takes its time to start. */
  config(config: object): string;
  /** Fails while it is imported. */
  throwing(message: string): string;
  readonly mistakes: readonly Mistake[];
  /** Beside an app, and no code of it. */
  readonly filesOfOthers: readonly string[];
}

const TYPESCRIPT: SavedApps = {
  file: 'app.mjs',
  version: (version) => `export const inference = () => ({ version: ${version} });`,
  inParts: (answer) => ({
    app: [
      'app.ts',
      `
      import { answer } from './lib/answer';
      let loads: number = 0;
      export function init() { loads += 1; }
      export const inference = () => ({ answer, loads });`,
    ],
    part: ['lib/answer.ts', `export const answer: number = ${answer};`],
  }),
  talking: (version) => `
    import { Potassium } from ${JSON.stringify(PACKAGE)};
    export const app = new Potassium('talks');
    app.websocket('/', async (_context, { ws }) => {
      for await (const message of ws) await ws.send('${version}: ' + message);
    });`,
  slow: (version, cue) => `
    import { given, note } from ${JSON.stringify(CUES_MODULE)};
    export async function init() { note('init ${version}'); await given('${cue}'); }
    ${TYPESCRIPT.version(version)}`,
  waiting: (version) => `
    import { given, note } from ${JSON.stringify(CUES_MODULE)};
    export async function inference({ until }, { signal }) {
      note('begun ${version}');
      if (until !== undefined) await given(until, signal);
      return { version: ${version}, aborted: signal.aborted };
    }`,
  routes: (routes) => `
    import { Potassium, Response } from ${JSON.stringify(PACKAGE)};
    import { given, note } from ${JSON.stringify(CUES_MODULE)};
    const app = new Potassium('routes').init(() => ({}));
    for (const route of ${JSON.stringify(routes)})
      app.handler(route, async () => {
        note('begun ' + route);
        await given('finish');
        return new Response({ json: {} });
      });
    export default app;`,
  config: (config) => `
    export const config = ${JSON.stringify(config)};
    export const init = () => new Promise((resolve) => setTimeout(resolve, 'initTimeout' in config ? 60_000 : 0));
    ${TYPESCRIPT.version(1)}`,
  throwing: (message) => `throw new Error("${message}");`,
  mistakes: [
    ['a syntax error', 'export function inference( {', /app\.mjs:1: syntax error/],
    ['a missing export', 'export const answer = 1;', /exports no `inference` function/],
    [
      'an init that throws',
      'export function init() { throw new Error("no weights"); } export const inference = () => 1;',
      /no weights/,
    ],
    [
      'a wrong option in config',
      'export const config = { port: 1 }; export const inference = () => 1;',
      /port/,
    ],
  ],
  filesOfOthers: ['node_modules/some/index.js', 'dist/app.js', '.cache/state.json'],
};

const CUES = `
import sys
sys.path.append("${ROOT}test/fixtures/python-apps")
from lib.cues import given, note
`;

const PYTHON: SavedApps = {
  file: 'app.py',
  version: (version) => `def inference(model_inputs):\n    return {"version": ${version}}\n`,
  inParts: (answer) => ({
    app: [
      'app.py',
      `
from lib.answer import ANSWER
loads = 0
def init():
    global loads
    loads += 1
def inference(model_inputs):
    return {"answer": ANSWER, "loads": loads}
`,
    ],
    // Each is of another length: of two that are saved in one second Python takes the second for the first, if not.
    part: ['lib/answer.py', `ANSWER = ${answer} ${'#'.repeat(answer)}\n`],
  }),
  talking: (version) => `
from potassium import Potassium
app = Potassium("talks")
@app.websocket("/")
def talk(context, request):
    for message in request.ws:
        request.ws.send(f"${version}: {message}")
`,
  slow: (version, cue) => `${CUES}
def init():
    note("init ${version}")
    given("${cue}")
${PYTHON.version(version)}`,
  waiting: (version) => `${CUES}
def inference(model_inputs, ctx):
    note("begun ${version}")
    if "until" in model_inputs:
        given(model_inputs["until"], ctx)
    return {"version": ${version}, "aborted": ctx.cancelled}
`,
  routes: (routes) => `${CUES}
from potassium import Potassium, Response
app = Potassium("routes")
@app.init
def init():
    return {}
for route in ${JSON.stringify(routes)}:
    @app.handler(route)
    def handler(context, request, route=route):
        note(f"begun {route}")
        given("finish")
        return Response(json={})
`,
  config: (config) => `
import json, time
config = json.loads('${JSON.stringify(config)}')
def init():
    time.sleep(60 if 'initTimeout' in config else 0)
${PYTHON.version(1)}`,
  throwing: (message) => `raise RuntimeError("${message}")\n`,
  mistakes: [
    ['a syntax error', 'def inference( {\n', /app\.py:1: syntax error/],
    ['a missing function', 'answer = 1\n', /`inference`/],
    [
      'an init that raises',
      'def init():\n    raise RuntimeError("no weights")\n\ndef inference(x):\n    return 1\n',
      /no weights/,
    ],
    [
      'a wrong option in config',
      'config = {"runTimeout": "1m", "port": 1}\n\ndef inference(x):\n    return 1\n',
      /port/,
    ],
  ],
  filesOfOthers: ['lib/__pycache__/some.py', 'site-packages/some.py', 'venv/some.py', '.venv/some.py'],
};

export const SAVED_APPS: Readonly<Record<Language, SavedApps>> = { TypeScript: TYPESCRIPT, Python: PYTHON };
