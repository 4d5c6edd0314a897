/** Mistakes in an app's definition, under the names Potassium gave them. */
export class RouteAlreadyInUseException extends Error {
  override readonly name = 'RouteAlreadyInUseException';

  constructor(detail = '') {
    super(`Route already in use${detail}`);
  }
}

export class InvalidEndpointTypeException extends Error {
  override readonly name = 'InvalidEndpointTypeException';

  constructor() {
    super("Invalid endpoint type. Must be 'handler' or 'background'"); // as Potassium says it
  }
}
