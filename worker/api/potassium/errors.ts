/** Errors in an app's definition, with Potassium's names. */
export class RouteAlreadyInUseException extends Error {
  override readonly name = 'RouteAlreadyInUseException';

  constructor(path: string, why = '') {
    super(`Route already in use: ${path}${why}`);
  }
}

export class InvalidEndpointTypeException extends Error {
  override readonly name = 'InvalidEndpointTypeException';

  constructor() {
    super("Invalid endpoint type. Must be 'handler' or 'background'"); // the text of Potassium
  }
}
