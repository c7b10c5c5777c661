// A client in another language, made from nothing but the .proto files.
//
//   node client.js PROTO_DIRECTORY ADDRESS libraries
//   node client.js PROTO_DIRECTORY ADDRESS groups PAGE_SIZE
//   node client.js PROTO_DIRECTORY ADDRESS watch JOB
//
// Prints one JSON document a line: a page of a listing, or a state of the job.
'use strict';

const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const [protoDirectory, address, command, argument] = process.argv.slice(2);

function load() {
  const files = ['library', 'duplicate', 'job'].map((name) => `mediaplane/v1/${name}_service.proto`);
  const definition = protoLoader.loadSync(files, {
    includeDirs: [protoDirectory],
    keepCase: true,
    longs: String, // a number of JavaScript is exact to 2^53 only
    enums: String,
    defaults: true,
  });
  return grpc.loadPackageDefinition(definition).mediaplane.v1;
}

function connect(Service) {
  return new Service(address, grpc.credentials.createInsecure());
}

function print(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

function call(client, method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

async function listLibraries(api) {
  const client = connect(api.LibraryService);
  const answer = await call(client, 'ListLibraries', {});
  print(
    answer.libraries.map((library) => ({
      name: library.name,
      display_name: library.display_name,
      root_path_hex: library.root_path.toString('hex'),
    })),
  );
}

async function pageGroups(api, pageSize) {
  const client = connect(api.DuplicateService);
  let token = '';
  do {
    const request = { page_size: pageSize, page_token: token };
    const answer = await call(client, 'ListDuplicateGroups', request);
    print(
      answer.groups.map((group) => ({
        group_key: group.group_key,
        hash_algorithm: group.hash_algorithm,
        content_hash_hex: group.content_hash.toString('hex'),
        file_count: group.file_count,
        total_size_bytes: group.total_size_bytes,
      })),
    );
    token = answer.next_page_token;
  } while (token);
}

function watchJob(api, job) {
  const stream = connect(api.JobService).WatchJobs({ names: [job] });
  return new Promise((resolve, reject) => {
    stream.on('data', (message) => print({ job: message.job.name, state: message.job.state }));
    stream.on('error', reject);
    stream.on('end', resolve);
  });
}

async function main() {
  const api = load();
  switch (command) {
    case 'libraries':
      return listLibraries(api);
    case 'groups':
      return pageGroups(api, Number(argument));
    case 'watch':
      return watchJob(api, argument);
    default:
      throw new Error(`There is no command ${command}.`);
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    print({ code: error.code, text: error.details || String(error) });
    process.exit(1);
  },
);
