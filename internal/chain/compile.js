// Compiles contracts/*.sol and prints {name: {abi, bytecode}}. Nothing of this machine
// gets into the bytecode: no metadata is appended.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const solc = require('solc')

const dir = path.join(__dirname, 'contracts')
const sources = {}
for (const file of fs.readdirSync(dir).filter((f) => f.endsWith('.sol')).sort()) {
  sources[file] = { content: fs.readFileSync(path.join(dir, file), 'utf8') }
}
const out = JSON.parse(solc.compile(JSON.stringify({
  language: 'Solidity',
  sources,
  settings: {
    evmVersion: 'shanghai',
    optimizer: { enabled: true, runs: 200 },
    metadata: { appendCBOR: false, bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  },
})))
const problems = (out.errors ?? []).map((e) => e.formattedMessage)
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exit(1)
}
const artefacts = {}
for (const file of Object.keys(sources)) {
  for (const [name, c] of Object.entries(out.contracts[file])) {
    artefacts[name] = { abi: c.abi, bytecode: '0x' + c.evm.bytecode.object }
  }
}
process.stdout.write(JSON.stringify(artefacts, null, 1) + '\n')
