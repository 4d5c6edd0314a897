/** Builds the parts that count and report metrics, as the options say: for scrapes, for the page, for the log, or none. */
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { HostReader } from '../machine/host-figures.js';
import { CallCounts } from '../metrics/call-counts.js';
import { MmsEvents } from '../metrics/mms-events.js';
import { MmsLines, serviceLines } from '../metrics/mms-lines.js';
import { ServerMetrics } from '../metrics/server-metrics.js';
import { TorchServeText } from '../metrics/torchserve-text.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { AnswerCounts } from '../status/answer-counts.js';
import type { ServerLogs } from './host/logs.js';
import type { ModelHost } from './host/model-host.js';

export class MetricsParts {
  /** Gets all calls only if metrics or the page are on: that takes about 0.3 us of a call. */
  readonly calls = new CallCounts();
  /** Null: no metrics page. */
  readonly page: ServerMetrics | null;
  readonly #events: MmsEvents | null;

  /** The parts get every outcome in `answers` and every event of the host's models from now on. */
  constructor(
    { metrics, cwd, resolved: { options } }: ServerPlan,
    logs: ServerLogs,
    { served, memory }: ModelHost,
    unsent: UnsentAnswers,
    answers: AnswerCounts,
  ) {
    const mode = options.metricsMode;
    const onProblem = (problem: string): void => logs.log.warn(problem);
    const hasTorchServe = metrics !== null && (mode === 'legacy' || mode === 'prometheus');
    const torchServe = hasTorchServe ? new TorchServeText(mode === 'legacy') : null;
    const hasLines = mode === 'log' || mode === 'legacy';
    const lines = hasLines ? new MmsLines((line) => logs.metrics.host.info(line)) : null;
    const facts = { models: served.registry, unsent, memory, calls: this.calls };
    this.page = metrics && new ServerMetrics(facts, torchServe, onProblem);
    this.#events =
      lines === null && torchServe === null
        ? null
        : new MmsEvents(lines, torchServe, new HostReader(cwd), options.metricInterval, onProblem);
    if (metrics !== null || options.page) answers.tell(this.calls);
    if (this.#events !== null) answers.tell(this.#events);
    // If lines are not wanted, those of custom services go to the debug log.
    const writesServices = hasLines || logs.log.isLevelEnabled('debug');
    const services = writesServices
      ? { told: serviceWriter(hasLines, logs, served, options.logFormat) }
      : null;
    served.observers.push(...[this.page, this.#events, services].filter((one) => one !== null));
  }

  start(): void {
    this.page?.sampler.start();
    this.#events?.start();
  }

  stop(): void {
    this.page?.sampler.stop();
    this.#events?.stop();
  }
}

function serviceWriter(
  hasLines: boolean,
  { log, metrics }: ServerLogs,
  served: ModelHost['served'],
  format: 'text' | 'json',
): (model: Model, event: ModelEvent) => void {
  return ({ spec }, event) => {
    if (event.type !== 'metrics') return;
    const { worker } = event;
    const model = served.labelOf(spec);
    const fields = model === '' ? { worker } : { model, worker };
    for (const line of serviceLines(event.metrics)) {
      if (hasLines) metrics.model.info(line, fields);
      else log.debug(format === 'json' ? fields : {}, line); // a text line ends with its time, as log parsers expect
    }
  };
}
