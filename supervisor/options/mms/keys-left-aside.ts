/** Keys of `config.properties` that have no effect here, with the reason. One warning lists those that a file has. */

const JVM = 'The server does not use Java.';
const TUNING = 'The front is one event loop; there is nothing to tune.';
const NOT_SERVED = 'Not served here.';
const LAUNCHER = 'Each worker gets its share of the cores, by `OMP_NUM_THREADS` and similar variables.';

export const KEYS_LEFT_ASIDE: Readonly<Record<string, string>> = {
  model_server_home: 'The server has no home folder.',
  vmargs: JVM,
  prefer_direct_buffer: JVM,
  debug: JVM,
  number_of_netty_threads: TUNING,
  netty_client_threads: TUNING,
  use_native_io: TUNING,
  io_ratio: TUNING,
  async_logging: 'The server never waits for its log.',
  preload_model: 'Each worker loads its own copy; map the weights from a file to share them.',
  plugins_path: NOT_SERVED,
  keystore: 'Keys and certificates are PEM files: see `certificate_file`.',
  keystore_pass: 'See `keystore`.',
  keystore_type: 'See `keystore`.',
  model_snapshot: 'No snapshots are written or read.',
  snapshot_store: 'No snapshots are written or read.',
  workflow_store: NOT_SERVED,
  grpc_inference_address: NOT_SERVED,
  grpc_inference_port: NOT_SERVED,
  grpc_management_address: NOT_SERVED,
  grpc_management_port: NOT_SERVED,
  enable_grpc_ssl: NOT_SERVED,
  enable_model_api: 'The address and the key of the management API decide who may register models.',
  disable_token_authorization: 'Keys are given by `--api-key` and `--management-key`.',
  token_expiration_min: 'Keys do not expire.',
  use_env_allowed_urls: '`allowed_urls` may contain `$$VAR$$`.',
  service_envelope: NOT_SERVED,
  install_py_dep_per_model:
    'No packages are installed for a model: name an interpreter that has them with `--python`.',
  ipex_enable: 'A handler may import it; the server does not.',
  cpu_launcher_enable: LAUNCHER,
  cpu_launcher_args: LAUNCHER,
  limit_max_image_pixels: 'Pillow has a limit of its own, which a handler may change.',
  enable_metrics_api: '`metrics_address` decides where metrics are served.',
  metrics_config: 'Every metric that a handler adds is reported.',
  model_metrics_auto_detect: 'Every metric that a handler adds is reported.',
  disable_system_metrics: 'The metrics of the machine cost too little to need a switch.',
  system_metrics_cmd: 'The server measures the machine itself.',
};
