/** Builds the parts that count and report metrics, as the options say: for scrapes, for the page, for the log, or none. */
import type { RequestObserver } from '../http/request/request-context.js';
import { hostReader } from '../machine/host-figures.js';
import type { Model } from '../models/model.js';
import type { ModelObserver } from '../models/model-resources.js';
import type { ServerLogs } from '../observe/server-logs.js';
import type { ServerOptions } from '../options/resolve.js';
import { CallCounts } from './call-counts.js';
import type { MetricFacts } from './house-metrics.js';
import { MmsEvents } from './mms-events.js';
import { MmsLines, serviceLines } from './mms-lines.js';
import { ServerMetrics } from './server-metrics.js';
import { TorchServeText } from './torchserve-text.js';

export class MetricsParts {
  readonly calls = new CallCounts();
  /** Null: no metrics page. */
  readonly page: ServerMetrics | null;
  readonly #events: MmsEvents | null;
  readonly #services: ModelObserver<Model> | null;
  readonly #hasCalls: boolean;

  /** `folder`: its disk is measured. `labelOf`: the model's name in the log; empty while there is only one model. */
  constructor(
    options: ServerOptions,
    hasPage: boolean,
    folder: string,
    logs: ServerLogs,
    facts: Pick<MetricFacts, 'models' | 'unsent' | 'memory'>,
    labelOf: (model: Model) => string,
  ) {
    const mode = options.metricsMode;
    const onProblem = (problem: string): void => logs.log.warn(problem);
    const hasTorchServe = hasPage && (mode === 'legacy' || mode === 'prometheus');
    const torchServe = hasTorchServe ? new TorchServeText(mode === 'legacy') : null;
    const hasLines = mode === 'log' || mode === 'legacy';
    const lines = hasLines ? new MmsLines((line) => logs.metrics.host.info(line)) : null;
    this.page = hasPage ? new ServerMetrics({ ...facts, calls: this.calls }, torchServe, onProblem) : null;
    this.#events =
      lines === null && torchServe === null
        ? null
        : new MmsEvents(lines, torchServe, hostReader(folder), options.metricInterval, onProblem);
    this.#hasCalls = hasPage || options.page;
    const hasServices = hasLines || logs.log.isLevelEnabled('debug');
    this.#services = hasServices ? serviceWriter(hasLines, options.logFormat, logs, labelOf) : null;
  }

  /** They get every outcome. All calls are counted only if metrics or the page are on: that takes about 0.3 us of a call. */
  get observers(): Partial<RequestObserver>[] {
    return [this.#hasCalls ? this.calls : null, this.#events].filter((one) => one !== null);
  }

  /** They get the events of all models. */
  get modelObservers(): ModelObserver<Model>[] {
    return [this.page, this.#events, this.#services].filter((one) => one !== null);
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

/** Writes the lines of custom services; if lines are not wanted, to the debug log. */
function serviceWriter(
  hasLines: boolean,
  format: ServerOptions['logFormat'],
  { log, metrics }: ServerLogs,
  labelOf: (model: Model) => string,
): ModelObserver<Model> {
  return {
    told(of, event) {
      if (event.type !== 'metrics') return;
      const { worker } = event;
      const model = labelOf(of);
      const fields = model === '' ? { worker } : { model, worker };
      for (const line of serviceLines(event.metrics)) {
        if (hasLines) metrics.model.info(line, fields);
        else log.debug(format === 'json' ? fields : {}, line); // a text line ends with its time, as log parsers expect
      }
    },
  };
}
