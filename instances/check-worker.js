// Runs the checker of the standard library under Pyodide.  `make browser` puts both beside this file.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const CHECK = `
import lzma
import sys
import zlib
sys.path.insert(0, "/verify.pyz")
from kvopt.verify import verify
from kvopt.verify.certificate_shape import LARGEST_FILE

def unpack():
    with open("/certificate", "rb") as file:
        packed = file.read()
    for first, reader in ((b"\\xfd7zXZ", lzma.LZMADecompressor()), (b"\\x1f\\x8b", zlib.decompressobj(31))):
        if packed.startswith(first):
            with open("/certificate", "wb") as file:  # one byte too many is refused by the checker
                file.write(reader.decompress(packed, LARGEST_FILE + 1))

def check(progress):
    try:
        unpack()
    except (lzma.LZMAError, zlib.error) as error:
        return 2, f"UNREADABLE: cannot be unpacked: {error}"
    verdict = verify("/certificate", None, progress)
    return verdict.exit_status, "\\n".join(verdict.lines)

check
`;

async function load() {
  const python = await loadPyodide();
  const reply = await fetch("verify.pyz");
  if (!reply.ok) throw new Error(`verify.pyz: ${reply.status} ${reply.statusText}`);
  python.FS.writeFile("/verify.pyz", new Uint8Array(await reply.arrayBuffer()));
  return [python, python.runPython(CHECK)];
}

const loading = load();

onmessage = async ({ data: { name, bytes } }) => {
  try {
    const [python, check] = await loading;
    postMessage({ progress: `${name}: checking` });
    python.FS.writeFile("/certificate", new Uint8Array(bytes));
    const verdict = check((progress) => postMessage({ progress: `${name}: ${progress}` }));
    const [status, lines] = verdict.toJs();
    verdict.destroy();
    postMessage({ name, status, lines: lines.split("\n") });
  } catch (error) {
    // Out of memory, or a fault of ours: no verdict.
    postMessage({ failure: `${name}: the check ended without a verdict: ${error.message}` });
  }
};
