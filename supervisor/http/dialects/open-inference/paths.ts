/** The paths of the protocol, with their methods and keys. */
import type { RequestContext } from '../../request/request-context.js';
import type { AnswerContext, WriteAnswer } from '../../answer/koa-answers.js';
import type { Operation } from '../dialect.js';
import { calledModel, type PathParams } from './called-model.js';
import { inferPlan } from './infer.js';
import { modelConfig, modelMetadata, modelReady } from './model-pages.js';
import { index, load, unload } from './repository.js';
import { listModels, live, ready, serverMetadata } from './server-pages.js';
import { allStatistics, modelStatistics } from './statistics.js';

/** Everything about a path but its parameters. */
export interface OpenInferencePath extends Pick<Operation, 'auth' | 'counts' | 'isLogged' | 'methods'> {
  act(context: RequestContext, params: PathParams): Operation['act'];
}

type Write = (ctx: AnswerContext, context: RequestContext, params: PathParams) => void | Promise<void>;

function page(auth: Operation['auth'], write: Write): OpenInferencePath {
  return {
    auth,
    counts: false,
    methods: 'GET, HEAD',
    act: (_context, params) => ({ write: bound(write, params) }),
  };
}

function change(write: Write): OpenInferencePath {
  return {
    auth: 'management',
    counts: false,
    isLogged: true,
    methods: 'POST',
    act: (_context, params) => ({ write: bound(write, params) }),
  };
}

function bound(write: Write, params: PathParams): WriteAnswer {
  return (ctx, context) => write(ctx, context, params);
}

const CALL: OpenInferencePath = {
  auth: 'call',
  counts: true,
  methods: 'POST',
  act: (context, params) => inferPlan(calledModel(context, params), params['version'] !== undefined),
};

type Row = readonly [path: string, OpenInferencePath];

const OF_MODEL: readonly Row[] = [
  ['', page('call', modelMetadata)],
  ['/ready', page('none', modelReady)],
  ['/config', page('call', modelConfig)],
  ['/stats', page('call', modelStatistics)],
  ['/infer', CALL],
];

const MODEL = '/v2/models/{model}';

const REPOSITORY: readonly Row[] = [
  ['/v2/repository/index', change(index)],
  ['/v2/repository/models/{model}/load', change(load)],
  ['/v2/repository/models/{model}/unload', change(unload)],
];

/** `managesModels`: with the paths of the model repository. */
export function openInferencePaths(managesModels: boolean): readonly Row[] {
  return [
    ['/v2', page('call', serverMetadata(managesModels ? ['model_repository'] : []))],
    ['/v2/health/live', page('none', live)],
    ['/v2/health/ready', page('none', ready)],
    ['/v2/models', page('call', listModels)],
    ['/v2/models/stats', page('call', allStatistics)],
    ...[MODEL, `${MODEL}/versions/{version}`].flatMap((base) =>
      OF_MODEL.map(([path, one]): Row => [base + path, one]),
    ),
    ...(managesModels ? REPOSITORY : []),
  ];
}
