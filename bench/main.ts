/**
 * `npm run bench [-- --rounds N --seconds S CASE ...]`: the numbers of docs/benchmarks.md.
 * With `--before FOLDER`, another checkout that is built, there is one more case: `before`.
 * Prints one table, what else is worth knowing of each case, and the machine. Numbers below their goal are printed,
 * not failed: the exit code is 1 only if a case broke.
 */
import { parseArgs } from 'node:util';
import { Bench, type BenchCase } from './case.js';
import { batching } from './cases/batching.js';
import { before } from './cases/before.js';
import { bigJson } from './cases/big-json.js';
import { crash } from './cases/crash.js';
import { describeCase } from './cases/describe.js';
import { digits } from './cases/digits.js';
import { digitsBatches } from './cases/digits-batches.js';
import { echo } from './cases/echo.js';
import { fairness } from './cases/fairness.js';
import { functionChaosCase } from './cases/function-chaos.js';
import { functionHost, functions } from './cases/functions.js';
import { jobChaosCase } from './cases/job-chaos.js';
import { jobKills } from './cases/job-kills.js';
import { jobs } from './cases/jobs.js';
import { killers } from './cases/killers.js';
import { largeBodies } from './cases/large-bodies.js';
import { latency } from './cases/latency.js';
import { jobsBullmq } from './cases/jobs-bullmq.js';
import { jobsFlat } from './cases/jobs-flat.js';
import { jobsPolls } from './cases/jobs-polls.js';
import { longPolls } from './cases/long-polls.js';
import { manyModels } from './cases/many-models.js';
import { memoryAlternate } from './cases/memory-alternate.js';
import { memoryBudget } from './cases/memory-budget.js';
import { metrics } from './cases/metrics.js';
import { modelStormCase } from './cases/model-storm.js';
import { onnxFiles } from './cases/onnx-files.js';
import { overload } from './cases/overload.js';
import { postPath } from './cases/post-path.js';
import { potassium } from './cases/potassium.js';
import { python, pythonSmall } from './cases/python.js';
import { registrations } from './cases/registrations.js';
import { mixedSoak } from './cases/mixed-soak.js';
import { soak } from './cases/soak.js';
import { scaleBeside } from './cases/scale-beside.js';
import { scaleToZero } from './cases/scale-to-zero.js';
import { scaling } from './cases/scaling.js';
import { scalingChaosCase } from './cases/scaling-chaos.js';
import { schemas } from './cases/schemas.js';
import { service } from './cases/service.js';
import { serviceBatches } from './cases/service-batches.js';
import { sharedWeights } from './cases/shared-weights.js';
import { smallJson } from './cases/small-json.js';
import { concurrency, sleep } from './cases/sleep.js';
import { startup } from './cases/startup.js';
import { tensors } from './cases/tensors.js';
import { viewers } from './cases/viewers.js';
import { LoadGenerator } from './load/client.js';
import { machineFacts, watchStolenTime } from './machine.js';
import { formatTable, type Row } from './report.js';
import type { Duration } from './rounds.js';

const CASES: readonly BenchCase[] = [
  smallJson,
  latency,
  bigJson,
  echo,
  sleep,
  concurrency,
  digits,
  digitsBatches,
  onnxFiles,
  sharedWeights,
  tensors,
  batching,
  overload,
  longPolls,
  jobs,
  largeBodies,
  crash,
  describeCase,
  killers,
  fairness,
  startup,
  soak,
  potassium,
  manyModels,
  modelStormCase,
  registrations,
  metrics,
  viewers,
  postPath,
  service,
  serviceBatches,
];

/** They need packages of Debian's, or take long, and run only if they are named. */
const NAMED_CASES: readonly BenchCase[] = [
  python,
  pythonSmall,
  schemas,
  functions,
  functionHost,
  functionChaosCase,
  mixedSoak,
  jobKills,
  jobChaosCase,
  jobsPolls,
  jobsBullmq,
  ...jobsFlat,
  scaleToZero,
  scaleBeside,
  memoryAlternate,
  memoryBudget,
  scaling,
  scalingChaosCase,
];

interface Outcome {
  readonly rows: Row[];
  readonly notes: readonly string[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    before: { type: 'string' },
  },
});
const usual = values.before === undefined ? CASES : [...CASES, before(values.before)];
const known = [...usual, ...NAMED_CASES];
const duration: Duration = { rounds: Number(values.rounds), secondsPerRound: Number(values.seconds) };
const chosen = positionals.length === 0 ? usual : positionals.map(caseNamed);
process.exitCode = await runAll(chosen);

function caseNamed(name: string): BenchCase {
  const found = known.find((candidate) => candidate.name === name);
  if (found !== undefined) return found;
  throw new RangeError(
    `no case is called "${name}"; there are: ${known.map((each) => each.name).join(', ')}`,
  );
}

async function runAll(cases: readonly BenchCase[]): Promise<number> {
  if (process.platform !== 'linux') throw new Error('the bench reads /proc: it runs on Linux only');
  const stolenTime = watchStolenTime();
  const outcomes: Outcome[] = [];
  for (const each of cases) {
    const outcome = await runCase(each);
    if (outcome !== null) outcomes.push(outcome);
  }
  console.log(`\n${formatTable(outcomes.flatMap(({ rows }) => rows))}\n`);
  for (const note of outcomes.flatMap(({ notes }) => notes)) console.log(`- ${note}`);
  console.log(
    `\n${machineFacts()}; ${duration.rounds} rounds of ${duration.secondsPerRound} s; ${stolenTime()}`,
  );
  return outcomes.length === cases.length ? 0 : 1;
}

async function runCase(each: BenchCase): Promise<Outcome | null> {
  console.error(`${each.name} ...`);
  const generator = new LoadGenerator();
  const bench = new Bench(generator, duration);
  try {
    return { rows: await each.run(bench), notes: bench.notes };
  } catch (thrown) {
    console.error(`${each.name} broke:`, thrown);
    return null;
  } finally {
    await bench.close();
    generator.close();
  }
}
