/** Gauges: queued calls, and answers that clients have not read yet. */
import { MODEL_LABELS, one, onePerModel, type HouseMetric } from './house-metric.js';

export const QUEUE_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_queue_calls',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Calls that wait for a worker.',
    measure: onePerModel(({ dispatcher }) => dispatcher.queued),
  },
  {
    name: 'banana_arriving_calls',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Calls whose bodies are arriving.',
    measure: onePerModel(({ dispatcher }) => dispatcher.arriving),
  },
  {
    name: 'banana_queue_bytes',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Bytes of calls that wait or arrive.',
    measure: onePerModel(({ dispatcher }) => dispatcher.waitingBytes),
  },
  {
    name: 'banana_in_flight_calls',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Calls that workers hold and a client waits for.',
    measure: onePerModel(({ dispatcher }) => dispatcher.inFlight),
  },
  {
    name: 'banana_load_calls',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Calls that wait or run, for autoscalers.',
    measure: onePerModel(({ dispatcher }) => dispatcher.queued + dispatcher.inFlight),
  },
  {
    name: 'banana_load_peak_calls',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'The most of them at once in the last 60 s.',
    measure: onePerModel(({ mostCalls }) => mostCalls),
  },
  {
    name: 'banana_predicted_wait_seconds',
    type: 'gauge',
    labels: MODEL_LABELS,
    help: 'Predicted wait of a call that arrives now; absent until enough calls have run.',
    measure: onePerModel(({ dispatcher }) => {
      const waitMs = dispatcher.predictWaitMs();
      return waitMs === null ? null : waitMs / 1000;
    }),
  },
  {
    name: 'banana_unsent_clients',
    type: 'gauge',
    labels: [],
    help: 'Clients that have not read all of their answers.',
    measure: one(({ unsent }) => unsent.describe().clients),
  },
  {
    name: 'banana_unsent_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes of answers that clients have not read.',
    measure: one(({ unsent }) => unsent.describe().bytes),
  },
];
