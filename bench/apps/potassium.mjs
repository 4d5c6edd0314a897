/** The model of small.mjs as a Potassium app; `/background` is the same without a caller who waits. */
import { Potassium, Response } from 'banana-serve/potassium';
import { inference } from './small.mjs';

const app = new Potassium('small');
app.handler('/', (_context, request) => new Response({ json: inference(request.json) }));
app.background('/background', (_context, request) => inference(request.json));

export default app;
