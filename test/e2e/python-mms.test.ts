/** Handlers in Python as Multi Model Server and TorchServe have them: archives of every kind, batches, scaling and kills. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tgzOf, zipOf, type PackedEntry } from '../helpers/archives.js';
import { startManagedHere, workerProcesses } from '../helpers/managed-command.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { CLI, call, eventually, isAlive } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000, skip: needs('python3') };

const manifestOf = (modelName: string, handler: string, model: object = {}): PackedEntry => ({
  name: 'MAR-INF/MANIFEST.json',
  content: JSON.stringify({ runtime: 'python', model: { modelName, handler, ...model } }),
});

/** It imports what lies beside it, in two ways, and reads a file of its folder. */
const CATS: readonly PackedEntry[] = [
  manifestOf('cats', 'cats.py:score'),
  { name: 'labels.txt', content: 'felis' },
  { name: 'beside.py', content: 'WORD = "beside"' },
  { name: 'parts/__init__.py', content: '' },
  { name: 'parts/deep.py', content: 'from . import shallow\nWORD = shallow.WORD' },
  { name: 'parts/shallow.py', content: 'WORD = "relative"' },
  {
    name: 'cats.py',
    content: `
import logging
import os
from beside import WORD
from parts import deep

logging.info("imports of %s are done", __name__)

def score(data, context):
    if data is None:
        return None
    with open("labels.txt") as labels:
        found = [WORD, deep.WORD, labels.read(), context.manifest["model"]["modelName"]]
    in_folder = os.getcwd() == context.system_properties["model_dir"]
    return [{"found": found, "in_folder": in_folder} for _ in data]
`,
  },
];

/** A service of the first format, with a value for each input of its signature. */
const OLD: readonly PackedEntry[] = [
  {
    name: 'MANIFEST.json',
    content: JSON.stringify({
      Engine: { MXNet: 1.2 },
      Model: { 'Model-Name': 'old', Service: 'old_service.py', Signature: 'signature.json' },
    }),
  },
  {
    name: 'signature.json',
    content: JSON.stringify({
      input_type: 'application/json',
      inputs: [{ data_name: 'a' }, { data_name: 'b' }],
    }),
  },
  {
    name: 'old_service.py',
    content: `
from mms.model_service.mxnet_model_service import SingleNodeService

class AdderService(SingleNodeService):
    def __init__(self, model_name, model_dir, manifest, gpu=None):
        super().__init__(model_name, model_dir, manifest, gpu)
        self.name = manifest["Model"]["Model-Name"]

    def _preprocess(self, data):
        return [sum(values) for values in data]

    def _inference(self, data):
        return [2 * value for value in data]

    def _postprocess(self, data):
        return {"name": self.name, "sums": data}
`,
  },
];

/** A handler of TorchServe; a file beside it stands in for torch, as any file beside an app may. */
const TORCH: readonly PackedEntry[] = [
  manifestOf('net', 'handler.py', { serializedFile: 'model.pt' }),
  { name: 'model.pt', content: '3' },
  { name: 'index_to_name.json', content: '{"6": "six"}' },
  {
    name: 'torch.py',
    content: `
class cuda:
    is_available = staticmethod(lambda: False)

class no_grad:
    def __enter__(self): pass
    def __exit__(self, *_): pass

class Tensor(list):
    def to(self, device): return self
    def tolist(self): return list(self)

class Model:
    def __init__(self, factor): self.factor = factor
    def eval(self): pass
    def __call__(self, data): return Tensor(self.factor * one for one in data)

class jit:
    load = staticmethod(lambda path, map_location: Model(int(open(path).read())))

device = str
as_tensor = lambda data, device: Tensor(data)
`,
  },
  {
    name: 'handler.py',
    content: `
import logging
from ts.metrics.metric_type_enum import MetricTypes
from ts.torch_handler.base_handler import BaseHandler
from ts.utils.util import PredictionException

logging.getLogger(__name__).info("the handler of net is imported")

class NetHandler(BaseHandler):
    def initialize(self, context):
        super().initialize(context)
        self.numbers = context.metrics.add_metric_to_cache("Numbers", "count", ["First"], MetricTypes.COUNTER)

    def preprocess(self, data):
        bodies = [row.get("data") or row.get("body") for row in data]
        if any(not isinstance(body, int) for body in bodies):
            raise PredictionException("send a number", 422)
        self.numbers.add_or_update(len(bodies), [bodies[0]])
        return super().preprocess(bodies)

    def postprocess(self, data):
        return [{"class": self.mapping.get(str(one), one)} for one in data.tolist()]
`,
  },
];

/** The form of Multi Model Server's template: a module that loads itself, and takes full batches only. */
const templateOf = (length: string): string => `
import logging
import os

class ModelHandler(object):
    def __init__(self):
        self._batch_size = 0
        self.initialized = False

    def initialize(self, context):
        self._batch_size = context.system_properties["batch_size"]
        self.initialized = True

    def preprocess(self, batch):
        size = ${length}
        logging.getLogger(__name__).info("%d of at most %d items", len(batch), self._batch_size)
        assert size == len(batch), "Invalid input batch size: {}".format(len(batch))
        return batch

    def inference(self, model_input):
        return [{"size": len(model_input), "pid": os.getpid()}] * len(model_input)

    def postprocess(self, inference_output):
        return inference_output

    def handle(self, data, context):
        context.metrics.add_counter("Batches", 1)
        return self.postprocess(self.inference(self.preprocess(data)))

_service = ModelHandler()

def handle(data, context):
    if not _service.initialized:
        _service.initialize(context)
    if data is None:
        return None
    return _service.handle(data, context)
`;

/** Full batches, and any. */
const [TEMPLATE, TWIN] = [templateOf('self._batch_size'), templateOf('len(batch)')];

/** Weights have the name of their model, and the handler has another one. */
const MNIST: readonly PackedEntry[] = [
  { name: 'mnist.onnx', content: 'no graph' },
  {
    name: 'mnist_handler.py',
    content: `
def handle(data, context):
    with open("mnist.onnx") as weights:
        return data and [{"weights": weights.read()} for _ in data]
`,
  },
];

interface Batch {
  readonly size: number;
  readonly pid: number;
}

test('a model store with handlers in Python', LIMIT, async (t) => {
  const weighed = MNIST.map(({ name, content }) => [`mnist/${name}`, String(content)] as const);
  const store = appFolder(t, {
    'folder/service.py': TEMPLATE,
    'twin.py': TWIN,
    ...Object.fromEntries<string>(weighed),
  });
  const inFolder = CATS.map((entry) => ({ ...entry, name: `cats/${entry.name}` }));
  writeFileSync(join(store, 'cats.mar'), await zipOf(CATS));
  writeFileSync(join(store, 'lynx.tar.gz'), tgzOf(inFolder));
  writeFileSync(join(store, 'old.model'), await zipOf(OLD));
  writeFileSync(join(store, 'net.mar'), await zipOf(TORCH));
  writeFileSync(join(store, 'mnist.mar'), await zipOf(MNIST));
  const args = ['--drain-lag', '0s', '--models', 'net.mar'];
  const { server, management } = await startManagedHere(t, { args }, store);
  const register = (query: string): Promise<string> =>
    management.said(`POST /models?${query}&initial_workers=1`);
  await server.until(({ state }) => state === 'ready');

  await t.test('begins with a handler of TorchServe: its base loads what the manifest names', async () => {
    await server.untilPrinted('the handler of net is imported\n');
    assert.deepEqual((await management.infer('net', 2)).json(), { class: 'six' });
    assert.deepEqual((await management.infer('net', 3)).json(), { class: 9 });
    const refused = await management.infer('net', 'two');
    assert.deepEqual(refused.json(), {
      code: 422,
      type: 'InternalServerException',
      message: 'send a number',
    });
    await server.untilPrinted(/HandlerTime\.Milliseconds:[\d.]+\|#ModelName:net,Level:Model\|/);
    for (const first of [2, 3])
      await server.untilPrinted(new RegExp(`Numbers\\.Count:1\\|#First:${first},Level:Model\\|#`));
  });

  for (const [file, name] of [
    ['cats.mar', 'cats'],
    ['lynx.tar.gz', 'lynx'],
  ] as const)
    await t.test(`has ${file}, whose handler finds its modules and its files`, async () => {
      assert.equal(await register(`url=${file}&model_name=${name}`), '200 Workers scaled');
      const expected = { found: ['beside', 'relative', 'felis', 'cats'], in_folder: true };
      assert.deepEqual((await management.infer(name)).json(), expected);
      await server.untilPrinted('imports of cats are done\n');
    });

  for (const [file, name] of [
    ['mnist', 'by_folder'],
    ['mnist.mar', 'by_archive'],
  ] as const)
    await t.test(`runs the handler of ${file}, which has weights of the model's name beside it`, async () => {
      assert.equal(await register(`url=${file}&model_name=${name}`), '200 Workers scaled');
      assert.deepEqual((await management.infer(name)).json(), { weights: 'no graph' });
    });

  await t.test('has an archive of the first format, with a class of the first form', async () => {
    assert.equal(await register('url=old.model'), '200 Workers scaled');
    const form = new URLSearchParams({ a: '[1, 2]', b: '[3]' });
    const answer = await call(`${server.url}/predictions/old`, form.toString(), {
      'content-type': 'application/x-www-form-urlencoded',
    });
    assert.deepEqual(answer.json(), { name: 'old', sums: [6, 6] });
    assert.equal((await management.describe('old')).modelVersion, 'snapshot');
  });

  await t.test('has a folder and a file: the template takes full batches, its twin any', async () => {
    assert.equal(await register('url=folder&model_name=template'), '200 Workers scaled');
    const one = (await management.infer('template')).json<Batch>();
    assert.equal(one.size, 1);
    const options = 'batch_size=8&max_batch_delay=30000';
    assert.equal(await register(`url=twin.py&model_name=twin&${options}`), '200 Workers scaled');
    const answers = await Promise.all(Array.from({ length: 8 }, () => management.infer('twin')));
    assert.deepEqual(
      answers.map((answer) => answer.json<Batch>().size),
      Array(8).fill(8),
    );
    const name = 'Batches\\.Count:1\\|#ModelName:twin,Level:Model\\|#hostname:[^,]+,requestID:';
    await server.untilPrinted(new RegExp(`${name}[^,]+(,[^,]+){7},timestamp:`));
    await server.untilPrinted('8 of at most 8 items\n');
  });

  await t.test('scales them up and down, and answers with every process', async () => {
    const scale = (count: number): Promise<string> =>
      management.said(`PUT /models/template?min_worker=${count}&synchronous=true`);
    assert.equal(await scale(2), '200 Workers scaled');
    assert.equal((await management.pids('template')).length, 2);
    assert.equal(await scale(0), '200 Workers scaled');
    assert.equal(await management.refusal('template'), '503 ServiceUnavailableException');
    assert.equal(await scale(1), '200 Workers scaled');
    assert.equal((await management.infer('template')).status, 200);
  });

  await t.test('brings back one that is killed', async () => {
    const [killed = 0] = await management.pids('template');
    process.kill(killed, 'SIGKILL');
    await eventually(
      () => !isAlive(killed),
      60_000,
      () => 'the worker is still there',
    );
    const { pid } = (await management.infer('template')).json<Batch>();
    assert.notEqual(pid, killed);
    assert.deepEqual(await management.pids('template'), [pid]);
  });

  await t.test('gives them up, and nothing of them stays', async () => {
    for (const model of ['net', 'cats', 'lynx', 'by_folder', 'by_archive', 'old', 'template', 'twin'])
      assert.equal(await management.said(`DELETE /models/${model}`), `200 Model "${model}" unregistered`);
    assert.deepEqual(workerProcesses(server), []);
  });

  await server.stop('SIGINT', 0);
});

test('a handler in Python is packed and served as it is', LIMIT, async (t) => {
  const folder = appFolder(t, {
    'model/service.py': TWIN,
    'model/data.txt': '',
    'model/__pycache__/service.pyc': '',
  });
  const about = [
    '--model-name',
    'twin',
    '--model-path',
    join(folder, 'model'),
    '--handler',
    'service:handle',
  ];
  execFileSync(process.execPath, [CLI, 'archive', ...about, '--export-path', folder]);
  const { server, management } = await startManagedHere(t, { args: ['--models', 'all'] }, folder);
  await server.until(({ state }) => state === 'ready');
  assert.equal((await management.infer('twin')).json<Batch>().size, 1);
  await server.stop();
});

test('a service in Python is served by its file, on every path', LIMIT, async (t) => {
  const folder = appFolder(t, {
    'twin.py': `${TWIN}\nconfig = {"batch_size": 2, "max_batch_delay": "30s"}\n`,
  });
  const server = await startHere(join(folder, 'twin.py'), { t });
  const answers = await Promise.all(['/predictions/twin', '/'].map((path) => call(server.url + path, '{}')));
  assert.deepEqual(
    answers.map((answer) => answer.json<Batch>().size),
    [2, 2],
  );
  await server.stop();
});

/** As handlers of TorchServe turn it off that take many lines of JSON at once. */
const READS_ITSELF = `
import os

os.environ["TS_DECODE_INPUT_REQUEST"] = "false"

def handle(data, context):
    return data and [item["body"].decode().splitlines() for item in data]
`;

test(
  'a handler in Python may turn the reading of JSON off in its environment, as it could',
  LIMIT,
  async (t) => {
    const folder = appFolder(t, { 'lines.py': READS_ITSELF });
    const server = await startHere(join(folder, 'lines.py'), { t });
    const answer = await call(`${server.url}/predictions/lines`, '{"a":1}\n{"a":2}');
    assert.deepEqual([answer.status, answer.json()], [200, ['{"a":1}', '{"a":2}']]);
    await server.stop();
  },
);

/** Services that cannot be served, and the message of each. */
const MISTAKES: readonly (readonly [what: string, source: string, said: RegExp])[] = [
  ['no handler', 'def other(data, context): pass', /service\.py.*handle/],
  ['a load that raises', 'def handle(data, context): raise ValueError("no weights")', /no weights/],
  ['an import of what is not there', 'import mms.utils.mxnet', /banana-serve's mms has no utils/],
];

test('a mistake in a handler in Python is reported when a worker starts', LIMIT, async (t) => {
  const files = MISTAKES.map(([, source], i) => [`m${i}/service.py`, source] as const);
  const unfit = ['big/service.py', 'def handle(data, context): raise MemoryError'] as const;
  const store = appFolder(t, Object.fromEntries([...files, unfit]));
  const { server, management } = await startManagedHere(t, { args: ['--drain-lag', '0s'] }, store);
  for (const [i, [what, , said]] of MISTAKES.entries())
    await t.test(what, async () => {
      assert.equal(await management.said(`POST /models?url=m${i}`), `200 Model "m${i}" registered`);
      const scaled = await management.said(`PUT /models/m${i}?min_worker=1&synchronous=true`);
      assert.equal(scaled, '500 Failed to start workers');
      assert.match((await management.describe(`m${i}`)).workers[0]?.lastError ?? '', said);
      assert.equal(await management.said(`DELETE /models/m${i}`), `200 Model "m${i}" unregistered`);
    });
  await t.test('a load that finds no memory: 507', async () => {
    const registered = await management.said('POST /models?url=big&initial_workers=1&synchronous=true');
    assert.equal(registered, '507 Failed to start workers');
  });
  await server.stop();
});
