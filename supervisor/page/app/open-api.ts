import { keyHeaders } from '../live/key.js';
import { saveBlob } from '../parts/media-view.js';

/** Saves the OpenAPI document of a server that wants a key for it. */
export async function saveOpenApi(): Promise<void> {
  const response = await fetch('openapi.json', { headers: keyHeaders() });
  saveBlob(await response.blob(), 'openapi.json');
}
