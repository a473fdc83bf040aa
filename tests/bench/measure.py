# SPDX-License-Identifier: MIT OR Apache-2.0
"""One model, one number of threads: burncc's programs and the peers, interleaved.

Every contestant is a process that stays alive on the same cores. They take turns in short slices, in an order that
rotates, so that whatever else the machine does hits all alike; a contestant's time is the median of its rounds'
medians. The core's own multiply-add peak takes its turns too. Before the first slice the outputs are compared with
the first peer's. Out: a dictionary (a row of the table, an object of the JSON)."""
import statistics
import time

import data
import ours
from workers import Declined, Failed, Worker

FEWEST_ROUNDS = 3
COLD_AGAIN_S = 0.2                                      # a peer whose start is quicker is started twice more
TOLERANCE = {1: 1e-4, 10: 2e-2, 11: 1e-4}               # of an output's largest element, by element type


class Contest:
    def __init__(self, model, threads, cores, options, peers, peak, launch, folder, say):
        self.model, self.threads, self.cores, self.options = model, threads, cores, options
        self.peers, self.peak, self.launch, self.folder, self.say = peers, peak, launch, folder, say
        self.found = {}                                 # contestant: what its row says
        self.workers = {}
        self.programs = {}

    def enter(self, name, start):
        """Starts a contestant; one that fails has only its reason in the row."""
        try:
            self.found[name] = {}
            self.workers[name] = start()
            load, first = self.workers[name].ready[:2]
            self.found[name].update(load_ms=load * 1e-6, first_ms=first * 1e-6)
        except Declined:
            del self.found[name]
        except Failed as e:
            self.found[name]["failed"] = str(e)

    def start_peer(self, peer):
        if self.threads > 1 and peer.one_thread:
            raise Declined("it computes on one thread")
        command, environment = peer.command(self.model, self.folder, self.threads), peer.environment(self.folder)
        worker = Worker(peer.name, command, self.cores, self.options.timeout, environment)
        starts = [worker.ready[:2]]
        while len(starts) < 3 and sum(starts[0]) < COLD_AGAIN_S * 1e9:
            again = Worker(peer.name, command, self.cores, self.options.timeout, environment)
            starts.append(again.ready[:2])
            again.stop()
        worker.ready = sorted(starts, key=sum)[len(starts) // 2]
        self.found[peer.name]["cold_ms"] = sum(worker.ready) * 1e-6
        return worker

    def start_ours(self, target):
        own = self.folder / target
        p = ours.build(self.options.burncc, self.model, target, self.threads, own, self.options.burncc_options,
                       self.launch)
        self.programs[target] = p
        self.found[target].update(burncc_s=p.burncc_s, burncc_rss=p.burncc_rss, cc_s=p.cc_s, cc_rss=p.cc_rss,
                                  text_bytes=p.text_bytes, workspace_bytes=p.workspace, workspace_bound=p.lower_bound,
                                  weights_bytes=p.weights, kernels=p.kernels)
        return Worker(target, [p.path, self.folder], self.cores, self.options.timeout,
                      {"OPENBLAS_NUM_THREADS": str(self.threads)})

    def compare(self):
        """Outputs against those of the first contestant that has some: the first peer where there is one."""
        order = [p.name for p in self.peers] + list(self.options.target)
        want = None
        for name in (n for n in order if n in self.workers):
            try:
                self.workers[name].write()
                got = data.load(self.folder)
            except Failed as e:
                self.drop(name, str(e))
                continue
            if want is None:
                want, self.reference = got, name
                self.output_bytes = sum(a.nbytes for a in got.values())
                continue
            error = data.distance(want, got)
            allowed = self.options.tolerance or max(TOLERANCE.get(t.dtype, 0) for t in self.model.outputs)
            self.found[name].update(error=error, differs=not error <= allowed)

    def drop(self, name, why):
        self.found[name]["failed"] = why
        self.workers.pop(name).stop()

    def take_turns(self):
        names = list(self.workers)
        longest = self.options.seconds * len(names) * 1.5
        slice_s = self.options.seconds / self.options.rounds
        begin = time.monotonic()
        self.peak.begin()
        for n in range(self.options.rounds):
            self.peak.worker.slice(min(0.01, slice_s))
            for name in names[n % len(names):] + names[:n % len(names)]:
                if name in self.workers:
                    try:
                        self.workers[name].slice(slice_s)
                    except Failed as e:
                        self.drop(name, str(e))
            if n + 1 >= FEWEST_ROUNDS and time.monotonic() - begin > longest:
                break

    def finish(self, name, worker):
        ms = statistics.median(worker.rounds) * 1e-6
        gflops = 2e-6 * self.model.macs / ms if self.model.macs else None
        peak = self.peak.gflops() * self.threads
        self.found[name].update(median_ms=ms, min_ms=min(worker.samples) * 1e-6, samples=len(worker.samples),
                                rounds_ms=[r * 1e-6 for r in worker.rounds], gflops=gflops,
                                share_of_peak=gflops / peak if gflops and peak else None, rss_bytes=worker.memory())

    def run(self):
        self.reference, self.output_bytes = None, 0
        try:
            data.write(self.model, self.folder)
            for peer in self.peers:
                self.say(f"{peer.title} loads it")
                self.enter(peer.name, lambda: self.start_peer(peer))
            for target in self.options.target:
                self.say(f"compiling for {target}")
                self.enter(target, lambda: self.start_ours(target))
            self.compare()
            if not any(t in self.workers for t in self.options.target):
                return self.row()
            self.say("taking turns")
            self.take_turns()
            for name, worker in self.workers.items():
                self.finish(name, worker)
            for target in self.options.target:
                if target in self.workers:
                    self.found[target]["cold_ms"] = ours.cold(self.programs[target].path, self.folder, self.launch,
                                                              self.cores) * 1e3
        finally:
            for worker in self.workers.values():
                worker.stop()
        return self.row()

    def row(self):
        mine = self.found.get(self.options.target[0], {})
        for name, found in self.found.items():
            if "median_ms" in found and "median_ms" in mine:
                found["ratio"] = found["median_ms"] / mine["median_ms"]
        return {
            "model": self.model.name, "threads": self.threads, "macs": self.model.macs, "file_bytes": self.model.bytes,
            "input_bytes": sum(t.bytes() for t in self.model.inputs), "output_bytes": self.output_bytes,
            "peak_gflops": self.peak.gflops(), "reference": self.reference, "contestants": self.found
        }
