/** Values of programs that call an app for Node as a function: as V8 writes them. */
import { V8_VALUES } from '../../protocol/values/v8-values.js';
import type { DialectFormat } from './body-format.js';
import { programExchange, programFormat } from './program-exchange.js';

const EXCHANGE = programExchange(V8_VALUES);

export const FORMAT: DialectFormat = programFormat(() => EXCHANGE);
