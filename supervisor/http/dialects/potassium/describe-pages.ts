/** Describes Potassium's own paths; those about the default model only where there is one. */
import { ServeError } from '../../../../protocol/errors.js';
import type { JobState } from '../../../jobs/kept-jobs.js';
import { JOBS_PATH, POTASSIUM_PREFIX, POTASSIUM_STATUS_PATHS } from '../../../../protocol/reserved-paths.js';
import {
  FREE,
  TEXT,
  jsonReply,
  objectOf,
  type DescribedOperation,
  type DescribedServer,
  type JsonSchema,
} from '../../openapi/operation.js';

const COUNT: JsonSchema = { type: 'integer' };
const NUMBER: JsonSchema = { type: 'number' };

const STATUS = objectOf({
  gpu_available: { type: 'boolean' },
  idle_time: COUNT,
  inference_time: COUNT,
  sequence_number: COUNT,
  workers: COUNT,
  workers_ready: COUNT,
  queue_length: COUNT,
  in_flight: COUNT,
  completed: COUNT,
  failed: COUNT,
  restarts: COUNT,
  uptime: COUNT,
});

const JOB_STATES: readonly JobState[] = ['queued', 'running', 'succeeded', 'failed', 'lost'];

const JOB: JsonSchema = objectOf(
  {
    id: TEXT,
    state: { ...TEXT, enum: JOB_STATES },
    requestId: TEXT,
    model: TEXT,
    version: TEXT,
    route: TEXT,
    createdAt: { ...TEXT, format: 'date-time' },
    endedAt: { anyOf: [{ ...TEXT, format: 'date-time' }, { type: 'null' }] },
    runMs: NUMBER,
    error: {
      anyOf: [objectOf({ code: TEXT, message: TEXT, source: TEXT, status: COUNT }), { type: 'null' }],
    },
    status: { ...COUNT, description: 'The status of the result.' },
    contentType: { ...TEXT, description: 'The type of the result.' },
    encoding: { ...TEXT, enum: ['json', 'base64'], description: 'The form of the result.' },
    result: FREE,
  },
  [
    'id',
    'state',
    'requestId',
    'model',
    'version',
    'route',
    'createdAt',
    'endedAt',
    'runMs',
    'error',
    'result',
  ],
);

const JOB_PAGE: DescribedOperation = {
  path: `${JOBS_PATH}/{id}`,
  method: 'get',
  operationId: 'job',
  description: 'Describes a background job, with its result once it has ended.',
  auth: 'call',
  parameters: [{ name: 'id', in: 'path', required: true, description: 'The id of the job.', schema: TEXT }],
  responses: { 200: jsonReply('The job.', JOB) },
  failures: [new ServeError('SERVE_NOT_FOUND', 'There is no such job, or its result is no longer kept.')],
};

const STATUS_PAGES = POTASSIUM_STATUS_PATHS.map((path, i): DescribedOperation => {
  const page = {
    path,
    method: 'get',
    operationId: i === 0 ? 'potassiumStatus' : 'oldPotassiumStatus',
    description: "Describes the default model and its workers in Potassium's words; times in ms.",
    auth: 'call',
    responses: { 200: jsonReply('The status.', STATUS) },
  } as const;
  return i === 0 ? page : { ...page, deprecated: true };
});

const WARM_UPS = (['get', 'post'] as const).map((method): DescribedOperation => ({
  path: `${POTASSIUM_PREFIX}/warmup`,
  method,
  operationId: `${method}WarmUp`,
  description: 'Waits until a worker of the default model is ready.',
  auth: 'call',
  responses: { 200: jsonReply('A worker is ready.', objectOf({ warm: { type: 'boolean', const: true } })) },
  failures: [new ServeError('SERVE_NOT_READY'), new ServeError('SERVE_SHUTTING_DOWN')],
}));

export function describePages({ models }: DescribedServer): DescribedOperation[] {
  return models.default === null ? [JOB_PAGE] : [...STATUS_PAGES, ...WARM_UPS, JOB_PAGE];
}
