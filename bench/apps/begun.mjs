/** Answers with the time at which it began, on a clock that all processes of this machine share. */
import { Potassium, Response } from 'banana-serve/potassium';

const begun = () => ({ begunAtMs: performance.timeOrigin + performance.now() });

export const app = new Potassium('begun');
app.handler('/', () => new Response({ json: begun() }));
app.background('/background', begun);
