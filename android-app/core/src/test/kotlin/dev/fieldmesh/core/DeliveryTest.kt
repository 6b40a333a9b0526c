package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Clocks
import dev.fieldmesh.core.agent.Outbox
import dev.fieldmesh.core.agent.Shelf
import dev.fieldmesh.core.agent.pushFixes
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.withGaps
import dev.fieldmesh.core.log.StandaloneLog
import dev.fieldmesh.core.wire.Attachment
import dev.fieldmesh.core.wire.Event
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.PushedFix
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withTimeoutOrNull
import java.io.File
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** What goes to the node, what waits for it, and what is kept without it; in virtual time. */
@OptIn(ExperimentalCoroutinesApi::class)
class DeliveryTest {
    private val lost = AgentException.Unreachable(IOException("no route"))

    private class Memory(var text: String? = null) : Shelf {
        override fun load() = text

        override fun save(text: String) {
            this.text = text
        }
    }

    /** Of a phone that stays on. */
    private fun clocks(bootNs: () -> Long) = Clocks(bootNs, { bootNs() / 1_000_000 }, { 1 })

    private fun note(text: String) = { id: String -> Note(id, "mark", text, 0.0) }

    @Test
    fun `notes wait for the node, in their order and with their age, also over the end of the process`() = runTest {
        val shelf = Memory()
        val clock = clocks { currentTime * 1_000_000 }
        Outbox(shelf, clock).add(note("first"))
        delay(60_000)
        val outbox = Outbox(shelf, clock) // the process has ended in between
        outbox.add(note("second"))
        val taken = mutableListOf<Note>()
        var tries = 0
        val job = launch {
            outbox.deliver({ n ->
                if (tries++ < 3) throw lost
                taken += n
                SpoolPosition("e", 1)
            }) {}
        }
        advanceTimeBy(20_000)
        job.cancel()
        assertEquals(listOf("first", "second"), taken.map { it.text })
        assertTrue(taken[0].ageMs!! in 66_000.0..67_000.0 && taken[1].ageMs!! in 6_000.0..7_000.0, "$taken")
        assertEquals(emptyList(), Outbox(shelf, clock).pending)
    }

    @Test
    fun `a note whose photo comes later is of the moment at which it was begun`() = runTest {
        val shelf = Memory()
        val clock = clocks { currentTime * 1_000_000 }
        val begun = Outbox(shelf, clock).begin(note("a photo"))
        delay(30_000)
        val outbox = Outbox(shelf, clock) // the process has ended in between
        assertEquals(emptyList(), outbox.pending)
        val photo = Attachment("image/jpeg", 3, "abc")
        outbox.add(begun.copy(note = begun.note.copy(attachment = photo)))
        val taken = mutableListOf<Note>()
        val job = launch {
            outbox.deliver({ n ->
                taken += n
                SpoolPosition("e", 1)
            }) {}
        }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(listOf(Triple("a photo", 30_000.0, photo)), taken.map { Triple(it.text, it.ageMs, it.attachment) })
    }

    @Test
    fun `an older agent gets the words of a photo alone, and of what it refuses otherwise nothing`() = runTest {
        val outbox = Outbox(Memory(), clocks { 0 })
        for (text in listOf("a photo", "bad")) {
            outbox.add { id -> Note(id, "mark", text, 0.0, attachment = Attachment("image/jpeg", 3, "abc")) }
        }
        val taken = mutableListOf<Note>()
        val job = launch {
            outbox.deliver({ n ->
                if (n.text == "bad") throw AgentException.Refused(WireError("bad_request", "body.text: too long"))
                if (n.attachment != null) {
                    throw AgentException.Refused(WireError("bad_request", "body: unknown field \"attachment\""))
                }
                taken += n
                SpoolPosition("e", 1)
            }) {}
        }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(listOf("a photo" to null), taken.map { it.text to it.attachment })
        assertEquals(emptyList(), outbox.pending)
    }

    @Test
    fun `a note's age outlives the phone's restart, whichever uptime is longer`() = runTest {
        for (uptimeMs in listOf(20_000L, 500_000L)) {
            val shelf = Memory()
            Outbox(shelf, Clocks({ 100_000_000_000 }, { 1_800_000_000_000 }, { 41 })).add(note("before"))
            val taken = mutableListOf<Note>()
            val job = launch {
                val after = Clocks({ uptimeMs * 1_000_000 }, { 1_800_000_600_000 }, { 42 })
                Outbox(shelf, after).deliver({ n ->
                    taken += n
                    SpoolPosition("e", 1)
                }) {}
            }
            advanceTimeBy(1000)
            job.cancel()
            assertEquals(listOf(600_000.0), taken.map { it.ageMs }, "$uptimeMs ms after the restart")
        }
    }

    @Test
    fun `a note tells its age after days, and none that is beyond what a node takes`() = runTest {
        val dayMs = 86_400_000L
        val noted = 1_800_000_000_000
        for ((days, told) in listOf(3L to 3.0 * dayMs, 31L to 31.0 * dayMs, 32L to null)) {
            for (boot in 1..2) {
                val shelf = Memory()
                Outbox(shelf, Clocks({ 0 }, { noted }, { 1 })).add(note("bus"))
                val upMs = if (boot == 1) days * dayMs else 60_000
                val taken = mutableListOf<Note>()
                val job = launch {
                    Outbox(shelf, Clocks({ upMs * 1_000_000 }, { noted + days * dayMs }, { boot })).deliver({ n ->
                        taken += n
                        SpoolPosition("e", 1)
                    }) {}
                }
                advanceTimeBy(1000)
                job.cancel()
                assertEquals(listOf(told), taken.map { it.ageMs }, "$days days later, boot $boot")
            }
        }
    }

    @Test
    fun `an older agent that takes no age of more than a day gets the time of a mark in its words`() = runTest {
        val noted = 1_800_000_000_000 // 2027-01-15T08:00:00Z
        val dayMs = 86_400_000L
        for ((text, told) in listOf("bus" to "bus", "b".repeat(2000) to "b".repeat(1971))) {
            val shelf = Memory()
            Outbox(shelf, Clocks({ 0 }, { noted }, { 1 })).add(note(text))
            val taken = mutableListOf<Note>()
            val after = Outbox(shelf, Clocks({ 2 * dayMs * 1_000_000 }, { noted + 2 * dayMs }, { 1 }))
            val job = launch {
                after.deliver({ n ->
                    if ((n.ageMs ?: 0.0) > dayMs) {
                        val why = "body.age_ms: 1.728e+08 is not within 0 to 8.64e+07"
                        throw AgentException.Refused(WireError("bad_request", why))
                    }
                    taken += n
                    SpoolPosition("e", 1)
                }) {}
            }
            advanceTimeBy(1000)
            job.cancel()
            assertEquals(listOf("$told (noted 2027-01-15T08:00:00Z)" to 8.64e7), taken.map { it.text to it.ageMs })
            assertEquals(emptyList(), after.pending)
        }
    }

    @Test
    fun `a note that will never be taken does not keep the others out`() = runTest {
        val outbox = Outbox(Memory("no list of notes"), clocks { 0 })
        outbox.add(note("bad"))
        outbox.add(note("good"))
        val taken = mutableListOf<String>()
        val job = launch {
            outbox.deliver({ n ->
                if (n.text == "bad") throw AgentException.Refused(WireError("bad_request", "text"))
                taken += n.text
                SpoolPosition("e", 1)
            }) {}
        }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(listOf("good"), taken)
    }

    @Test
    fun `a decision on a run that the node does not hold any more is dropped, and told`() = runTest {
        val outbox = Outbox(Memory(), clocks { 0 })
        for (run in listOf("monday-1", "tuesday-1")) outbox.add { id -> Note(id, "skip", "", 0.0, run, trial = 12) }
        val taken = mutableListOf<Note>()
        val refused = mutableListOf<Note>()
        val job = launch {
            outbox.deliver({ n ->
                if (n.run != "tuesday-1") throw AgentException.Refused(WireError("conflict", "another run"))
                taken += n
                SpoolPosition("e", 1)
            }, refused::add) {}
        }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(listOf("monday-1") to listOf("tuesday-1"), refused.map { it.run } to taken.map { it.run })
        assertEquals(emptyList(), outbox.pending)
    }

    @Test
    fun `a slow node gets the newest fix and not those of before`() = runTest {
        val fixes = flow {
            repeat(100) {
                emit(Fix(currentTime * 1_000_000, 3, latDeg = 0.0, lonDeg = 0.0, speedMps = it.toDouble()))
                delay(100)
            }
        }
        val got = mutableListOf<PushedFix>()
        pushFixes(fixes, { fix ->
            got += fix
            delay(1000)
            Gps(mode = 3, connected = true)
        }, { currentTime * 1_000_000 })
        assertTrue(got.size in 10..12, "${got.size} pushes in 10 s to a node that takes 1 s for each")
        assertTrue(got.all { it.ageMs <= 100 }, got.map { it.ageMs }.toString())
    }

    @Test
    fun `a fix of long ago is not pushed, and holds back no newer one`() = runTest {
        val startNs = 100_000_000_000
        val nowNs = { startNs + currentTime * 1_000_000 }
        val fixes = flow {
            emit(Fix(startNs - 61_000_000_000, 3, latDeg = 0.0, lonDeg = 0.0)) // as a new collector gets it again
            delay(200)
            emit(Fix(nowNs(), 3, latDeg = 0.0, lonDeg = 0.0))
        }
        assertEquals(listOf(200L), pushes(fixes, nowNs, "bad_request") { it.ageMs > 60_000 })
    }

    @Test
    fun `only a node with a GPS of its own is left alone for a while`() = runTest {
        val nowNs = { currentTime * 1_000_000 }
        fun everySecond() = flow {
            repeat(40) {
                emit(Fix(nowNs(), 3, latDeg = 0.0, lonDeg = 0.0))
                delay(1000)
            }
        }
        val refused = pushes(everySecond(), nowNs, "unavailable") { true }
        assertEquals(40, refused.size, "the next fix may be taken")
        val startMs = currentTime
        val asked = pushes(everySecond(), nowNs, "conflict") { true }.map { it - startMs }
        assertTrue(asked.size == 2 && asked[1] in 30_000..31_000, "$asked")
    }

    @Test
    fun `a person is told why the node refuses this phone's GPS, until it takes it or is another`() = runTest {
        val why = WireError("conflict", "this node is where van says", "have only one phone give it its GPS")
        val instrument = Instrument({ currentTime * 1_000_000 }, { _, _ -> })
        suspend fun push(refusal: WireError?): WireError? {
            pushFixes(
                flowOf(Fix(currentTime * 1_000_000, 3, latDeg = 0.0, lonDeg = 0.0)),
                { refusal?.let { throw AgentException.Refused(it) } ?: Gps(mode = 3, connected = true) },
                { currentTime * 1_000_000 },
                instrument::pushed,
            )
            return instrument.state.value.gpsRefusal
        }
        assertEquals(why, push(why))
        assertEquals(why, push(WireError("unavailable", "later")), "that says nothing of whose GPS it is")
        assertEquals(null, push(null))
        for (leave in listOf(instrument::unpaired, instrument::connecting)) {
            push(why)
            leave()
            assertEquals(null, instrument.state.value.gpsRefusal)
        }
    }

    /** When fixes are pushed to a node that refuses some with [code], in milliseconds. */
    private suspend fun TestScope.pushes(
        fixes: Flow<Fix>,
        nowNs: () -> Long,
        code: String,
        refuses: (PushedFix) -> Boolean,
    ): List<Long> {
        val at = mutableListOf<Long>()
        pushFixes(fixes, { fix ->
            at += currentTime
            if (refuses(fix)) throw AgentException.Refused(WireError(code, "no"))
            Gps(mode = 3, connected = true)
        }, nowNs)
        return at
    }

    @Test
    fun `a receiver that falls silent has no fix until the next one`() = runTest {
        val receiver = flow {
            emit(Fix(0, 3, latDeg = 0.0, lonDeg = 0.0))
            delay(7000)
            emit(Fix(7, 3, latDeg = 0.0, lonDeg = 0.0))
        }
        val modes = mutableListOf<Int>()
        withTimeoutOrNull(8000) { receiver.withGaps { currentTime }.collect { modes += it.mode } }
        assertEquals(listOf(3, 1, 1, 1, 3), modes)
    }

    @Test
    fun `the log without an agent is in the schema of a spool, with its gaps`() {
        val file = File.createTempFile("log", ".ndjson")
        StandaloneLog(file, "phone", "e1").use { log ->
            log.add(Fix(1, 3, utcMs = 0, latDeg = 1.0, lonDeg = 2.0, speedMps = 13.9))
            log.add(Fix.none(2))
            log.add(Fix.none(3))
            log.add(Fix(4, 3, latDeg = 1.0, lonDeg = 2.0))
        }
        val records = file.readLines().map(Record::decode)
        file.delete()
        assertEquals((1L..6L).toList(), records.map { it.header.seq })
        assertEquals(listOf("gps", "event", "gps", "gps", "event", "gps"), records.map { it.header.kind })
        assertEquals(13.9, (records[0].body as Gps).speedMps)
        assertEquals("warning", (records[1].body as Event).level)
        assertEquals(1, (records[2].body as Gps).mode)
    }

    @Test
    fun `requests are as the shared samples have them`() {
        for ((name, serializer) in listOf("body_fix" to PushedFix.serializer(), "body_note" to Note.serializer())) {
            val text = File(System.getProperty("fieldmesh.golden"), "$name.json").readText()
            val value = WireJson.decodeFromString(serializer, text)
            val written = WireJson.parseToJsonElement(
                WireJson.encodeToString(
                    @Suppress("UNCHECKED_CAST") (serializer as kotlinx.serialization.KSerializer<Any>),
                    value,
                ),
            )
            val sample = WireJson.parseToJsonElement(text)
            val names = (written as Map<*, *>).keys
            assertTrue((sample as Map<*, *>).keys.containsAll(names), "$name: $names")
        }
    }
}
