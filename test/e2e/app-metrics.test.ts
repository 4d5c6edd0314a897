/** `ctx.metrics` of each kind of app, as a scrape shows it. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { editedApp, type Ending } from '../helpers/edited-app.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { untilScraped } from '../helpers/scrape.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import { fixture, runCommand } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

type Sources = Readonly<Record<Language, string>>;

/** Measures more than a number holds, under names that every object of JavaScript has. */
const HUGE: Sources = {
  TypeScript: `export const inference = (input, { metrics }) => {
  for (const name of ['huge', 'constructor', 'toString']) {
    metrics.counter(name, 1e308);
    metrics.counter(name, 1e308);
  }
  metrics.counter('after');
  return null;
};\n`,
  Python: `def inference(model_inputs, ctx):
    for name in ("huge", "constructor", "toString"):
        ctx.metrics.counter(name, 1e308)
        ctx.metrics.counter(name, 1e308)
    ctx.metrics.counter("after")\n`,
};

const POTASSIUM: Sources = {
  TypeScript: `import { Potassium, Response } from 'banana-serve/potassium';
export const app = new Potassium('own');
app.handler('/', (context, request) => {
  request.metrics.counter('pictures', 2);
  return new Response({ json: {} });
});\n`,
  Python: `from potassium import Potassium, Response
app = Potassium("own")
@app.handler("/")
def root(context, request):
    request.metrics.counter("pictures", 2)
    return Response(json={})\n`,
};

const SERVICE: Sources = {
  TypeScript: `export function handle(data, context) {
  if (data === null) return null;
  context.metrics.addCounter('Texts', data.length);
  context.metrics.addTime('Handler.Time', 12.5);
  context.metrics.histogram('lengths', 3);
  return data.map(() => 'ok');
}\n`,
  Python: `def handle(data, context):
    if data is None:
        return None
    context.metrics.add_counter("Texts", len(data))
    context.metrics.add_time("Handler.Time", 12.5)
    context.metrics.histogram("lengths", 3)
    return ["ok" for _ in data]\n`,
};

withEachRuntime(({ language, app }) => {
  const ownApp = (t: Ending, sources: Sources): string => {
    const file = language === 'Python' ? 'app.py' : 'app.mjs';
    return editedApp(t, { [file]: sources[language] }).path(file);
  };

  describe('ctx.metrics', LIMIT, () => {
    test('counters and histograms add up over restarts, gauges are those of the workers that live', async (t) => {
      const args = ['--metrics', '--workers', '2'];
      const server = await startHere(app('measures'), { t, args, expectedRestarts: 1 });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      for (let i = 0; i < 4; i += 1) await ask(server, { labels: { language: 'en' } });
      await untilScraped(server.url, (one) => one.sum('words') === 4);
      assert.equal((await ask(server, { dies: 'SIGKILL' })).status, 500);
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      await ask(server, { labels: { language: 'en' } });
      const found = await untilScraped(
        server.url,
        (one) => one.sum('words') === 5 && one.sum('starts') === 3,
      );
      assert.deepEqual(found.find('words')[0]?.labels, { model: 'measures', version: '1', language: 'en' });
      assert.equal(found.sum('seconds_count'), 5);
      assert.equal(found.sum('seconds_bucket', { le: '0.0025' }), 5);
      const gauges = found.find('loaded_workers').map(({ labels, value }) => [labels['worker'], value]);
      assert.deepEqual(gauges.sort(), [
        ['0', 1],
        ['1', 2],
      ]);
      await server.stop();
    });
  });

  describe('ctx.metrics of several models of one server', LIMIT, () => {
    const models = {
      measures: app('measures'),
      huge: ownApp({ after }, HUGE),
      own: ownApp({ after }, POTASSIUM),
      service: ownApp({ after }, SERVICE),
    };
    const args = Object.entries(models).flatMap(([name, path]) => ['--model', `${name}=${path}`]);
    const shared = shareHere(null, { args: ['--metrics', '--expose-errors', ...args] });
    const of = (name: keyof typeof models): { url: string } => ({
      url: `${shared.server.url}/models/${name}/`,
    });

    test('a name that is not allowed fails the call in words, and no scrape', async () => {
      const model = of('measures');
      const answer = await ask(model, { name: 'my-words' });
      assert.equal(answer.status, 500);
      assert.match(
        answer.text,
        /metric "my-words": a name may have up to 256 letters, digits and underscores/,
      );
      assert.equal(
        (await untilScraped(shared.server.url, (one) => one.sum('starts') === 1)).sum('words'),
        null,
      );
    });

    test('a sum that no number holds, and a name that every object has, cost no worker and no scrape', async () => {
      const model = of('huge');
      assert.equal((await ask(model, {})).status, 200);
      assert.equal((await ask(model, {})).status, 200);
      const found = await untilScraped(shared.server.url, (one) => one.sum('after') === 2);
      assert.deepEqual(found.find('huge'), []);
    });

    test("a Potassium app has them on its handlers' requests", async () => {
      const model = of('own');
      await ask(model, {});
      await untilScraped(shared.server.url, (one) => one.sum('pictures') === 2);
    });

    test('a custom service has them beside those that it always had, which are there too', async () => {
      const model = of('service');
      assert.equal((await ask(model, {})).status, 200);
      assert.equal((await ask(model, {})).status, 200);
      const found = await untilScraped(shared.server.url, (one) => one.sum('lengths_count') === 2);
      assert.equal(found.sum('Texts'), 2);
      assert.equal(found.sum('Handler_Time'), 12.5);
    });
  });
});

test('a Potassium app in JavaScript has them in its init, too', LIMIT, async (t) => {
  const app = editedApp(t, {
    'app.mjs': `import { Potassium } from 'banana-serve/potassium';
export const app = new Potassium('own').init((workerNum, { metrics }) => {
  metrics.counter('loads', workerNum + 1);
  return {};
});\n`,
  });
  const server = await startHere(app.path('app.mjs'), { t, args: ['--metrics'] });
  await untilScraped(server.url, (one) => one.sum('loads') === 1);
  await server.stop();
});

test('a test client sees them', LIMIT, async (t) => {
  const program = runCommand([fixture('measures-test-client.mjs')], { t, command: process.execPath });
  assert.equal((await program.ended).code, 0, program.stderr());
  assert.match(program.stdout(), /^pictures\{model="[^"]+",version="1"\} 2$/m);
});
