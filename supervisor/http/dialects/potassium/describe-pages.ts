/**
 * Describes the paths of jobs, which every app may have, and Potassium's own; those about the default model only where there
 * is one.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { JOB_STATES } from '../../../jobs/kept-jobs.js';
import { JOBS_PATH, POTASSIUM_PREFIX, POTASSIUM_STATUS_PATHS } from '../../../../protocol/reserved-paths.js';
import { describesClientsOf } from '../../openapi/described-clients.js';
import {
  FREE,
  FREE_CONTENT,
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

const DATE: JsonSchema = { ...TEXT, format: 'date-time' };
const STATE: JsonSchema = { ...TEXT, enum: JOB_STATES };

function orNull(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: 'null' }] };
}

const FACTS = {
  id: TEXT,
  state: STATE,
  requestId: TEXT,
  model: TEXT,
  version: TEXT,
  route: TEXT,
  createdAt: DATE,
  attempts: { ...COUNT, description: 'Number of times that it has begun.' },
  begunAt: orNull(DATE),
  endedAt: orNull(DATE),
  progress: orNull(objectOf({ fraction: NUMBER, text: TEXT })),
  runMs: NUMBER,
  error: orNull(objectOf({ code: TEXT, message: TEXT, source: TEXT, status: COUNT })),
};

const JOB: JsonSchema = objectOf(
  {
    ...FACTS,
    status: { ...COUNT, description: 'The status of the result.' },
    contentType: { ...TEXT, description: 'The type of the result.' },
    encoding: { ...TEXT, enum: ['json', 'base64'], description: 'The form of the result.' },
    result: FREE,
    resultUrl: { ...TEXT, description: 'Where a result over 1 MiB is.' },
    resultDropped: { ...TEXT, description: 'Why the result is not kept.' },
  },
  [...Object.keys(FACTS), 'result'],
);

const ID = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the job.',
  schema: TEXT,
} as const;

function inQuery(
  name: string,
  description: string,
  schema: JsonSchema,
): NonNullable<DescribedOperation['parameters']>[number] {
  return { name, in: 'query', required: false, description, schema };
}

const WAIT = inQuery('wait', 'Longest wait for the end of the job, such as 30s; 50s at most.', TEXT);
const UNKNOWN = new ServeError('SERVE_NOT_FOUND', 'There is no such job, or it is no longer kept.');

const JOB_PAGES: readonly DescribedOperation[] = [
  {
    path: JOBS_PATH,
    method: 'get',
    operationId: 'listJobs',
    description: "Lists everybody's jobs, the newest first.",
    auth: 'call',
    parameters: [
      inQuery('state', 'Only jobs in this state.', STATE),
      inQuery('limit', 'Most jobs on the page, 100 by default.', COUNT),
      inQuery('cursor', 'The `cursor` of the page before.', TEXT),
    ],
    responses: {
      200: jsonReply(
        'The jobs.',
        objectOf({ jobs: { type: 'array', items: objectOf(FACTS) }, cursor: orNull(TEXT) }),
      ),
    },
    failures: [new ServeError('SERVE_FORBIDDEN')],
  },
  {
    path: `${JOBS_PATH}/{id}`,
    method: 'get',
    operationId: 'getJob',
    description:
      'Describes a job, with its result once it has ended. With `Accept: text/event-stream`: at each change.',
    auth: 'call',
    parameters: [ID, WAIT],
    responses: { 200: jsonReply('The job.', JOB) },
    failures: [UNKNOWN],
  },
  {
    path: `${JOBS_PATH}/{id}`,
    method: 'delete',
    operationId: 'cancelJob',
    description: 'Cancels a job.',
    auth: 'call',
    parameters: [ID],
    responses: {
      202: { description: 'It runs: its app is told, and its outcome decides.' },
      204: { description: 'It was queued, and is cancelled.' },
    },
    failures: [UNKNOWN, new ServeError('SERVE_JOB_ENDED')],
  },
  {
    path: `${JOBS_PATH}/{id}/result`,
    method: 'get',
    operationId: 'getJobResult',
    description: "Answers as the call would have: with the app's status, type and bytes, or with its error.",
    auth: 'call',
    parameters: [ID, WAIT],
    responses: {
      200: {
        description: "The app's answer; its status may be another one.",
        content: FREE_CONTENT,
      },
      202: jsonReply('It has not ended.', objectOf(FACTS)),
    },
    failures: [UNKNOWN, new ServeError('SERVE_RESULT_DROPPED')],
  },
];

const STATUS_PAGES = POTASSIUM_STATUS_PATHS.map((path, i): DescribedOperation => {
  const page = {
    path,
    method: 'get',
    operationId: i === 0 ? 'getPotassiumStatus' : 'getOldPotassiumStatus',
    description: "Describes the default model and its workers in Potassium's words; times in ms.",
    auth: 'call',
    responses: { 200: jsonReply('The status.', STATUS) },
  } as const;
  return i === 0 ? page : { ...page, deprecated: true };
});

const WARM_UPS = (['get', 'post'] as const).map((method): DescribedOperation => ({
  path: `${POTASSIUM_PREFIX}/warmup`,
  method,
  operationId: method === 'get' ? 'getWarmUp' : 'warmUp',
  description: 'Waits until a worker of the default model is ready.',
  auth: 'call',
  responses: { 200: jsonReply('A worker is ready.', objectOf({ warm: { type: 'boolean', const: true } })) },
  failures: [
    new ServeError('SERVE_NOT_READY'),
    new ServeError('SERVE_SHUTTING_DOWN'),
    ...(method === 'post' ? [new ServeError('SERVE_ORIGIN_REFUSED')] : []),
  ],
}));

export function describePages(server: DescribedServer): DescribedOperation[] {
  const hasPages = server.models.default !== null && describesClientsOf(server, 'potassium');
  return hasPages ? [...JOB_PAGES, ...STATUS_PAGES, ...WARM_UPS] : [...JOB_PAGES];
}
