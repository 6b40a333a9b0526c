package dev.fieldmesh.core

import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Campaigns
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Other
import dev.fieldmesh.core.wire.PairReply
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFiles
import dev.fieldmesh.core.wire.RunRequest
import dev.fieldmesh.core.wire.Runs
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.Station
import dev.fieldmesh.core.wire.WiFi
import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.core.wire.WireJson
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import java.io.File
import java.math.BigDecimal
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** The golden files of protocols/wire, which the Go side reads and writes too. */
class GoldenTest {
    private val golden = File(System.getProperty("fieldmesh.golden"))

    private fun text(name: String) = File(golden, "$name.json").readText()

    @Test
    fun `records are written as they were read`() {
        val files = golden.listFiles { f -> f.name.startsWith("record_") }.orEmpty()
        assertTrue(files.size >= 16, "only ${files.size} golden records in $golden")
        for (file in files) {
            val record = Record.decode(file.readText())
            if (record.body is Other) {
                assertEquals(plain(file.readText()), plain(record.encode()), file.name)
            } else {
                within(plain(record.encode()), plain(file.readText()), file.name)
            }
        }
    }

    @Test
    fun `the kinds that the app uses are understood`() {
        val gps = assertIs<Gps>(Record.decode(text("record_gps")).body)
        assertEquals(13.9, gps.speedMps)
        assertEquals(7261792012345, gps.fixBootNs)
        val station = assertIs<Station>(Record.decode(text("record_station")).body)
        assertEquals(-61.0, station.signalDbm)
        assertEquals(-61.0, assertIs<WiFi>(Record.decode(text("record_wifi")).body).signalDbm)
        assertIs<Other>(Record.decode(text("record_iperf3")).body)
    }

    @Test
    fun `bodies keep what the app knows, and newer fields harm nothing`() {
        same("body_campaign_view", CampaignView.serializer())
        same("body_node_status", NodeStatus.serializer())
        same("body_error", WireError.serializer())
    }

    /** Those of protocols/campaigns and protocols/pairing lie beside them. */
    private fun beside(folder: String, name: String) = File(golden, "../../$folder/golden/$name.json").readText()

    @Test
    fun `an experimenter's bodies are those of the controller`() {
        fun <T> whole(name: String, serializer: KSerializer<T>) {
            val text = beside("campaigns", "body_$name")
            val value = WireJson.decodeFromString(serializer, text)
            assertEquals(filled(plain(text)), filled(plain(WireJson.encodeToString(serializer, value))), name)
        }
        whole("campaigns", Campaigns.serializer())
        whole("choice", Choice.serializer())
        whole("planned", Planned.serializer())
        whole("preflight", Preflight.serializer())
        whole("start", RunRequest.serializer())
        whole("run", Run.serializer())
        whole("runs", Runs.serializer())
        whole("files", RunFiles.serializer())
        whole("places", Places.serializer())
    }

    @Test
    fun `an experimenter's pairing tells the controller's port, and another's does not`() {
        fun controller(name: String) =
            WireJson.decodeFromString(PairReply.serializer(), beside("pairing", name)).controller
        assertEquals(7448, controller("reply_experimenter")?.port)
        assertNull(controller("reply_app"))
    }

    @Test
    fun `a plan is read as a schedule`() {
        val schedule = WireJson.decodeFromString(Schedule.serializer(), text("body_run_plan"))
        val trial = schedule.trials.first()
        assertEquals(13.9, trial.speedMps)
        assertEquals(0.5, trial.acceptance.speedBandMps)
        assertEquals(20.0, trial.gate.placeM)
        assertEquals(-26.682, trial.course.siteLatDeg)
        assertEquals(null, schedule.trials[1].speedMps)
    }

    private fun <T> same(name: String, serializer: KSerializer<T>) {
        val value = WireJson.decodeFromString(serializer, text(name))
        within(plain(WireJson.encodeToString(serializer, value)), plain(text(name)), name)
    }

    /** All that [own] has, [whole] has too, and the same. */
    private fun within(own: Any?, whole: Any?, where: String) {
        when {
            own is Map<*, *> && whole is Map<*, *> -> own.forEach { (name, value) ->
                within(value, whole[name], "$where.$name")
            }
            own is List<*> && whole is List<*> -> {
                assertEquals(whole.size, own.size, where)
                own.forEachIndexed { i, value -> within(value, whole[i], "$where[$i]") }
            }
            else -> assertEquals(whole, own, where)
        }
    }

    /** Without lists that are empty, which may be left out. */
    private fun filled(e: Any?): Any? = when (e) {
        is Map<*, *> -> e.filterValues { it != emptyList<Any>() }.mapValues { filled(it.value) }
        is List<*> -> e.map(::filled)
        else -> e
    }

    /** JSON without regard to how numbers are spelt. */
    private fun plain(text: String): Any? = plain(WireJson.parseToJsonElement(text))

    private fun plain(e: JsonElement): Any? = when (e) {
        is JsonObject -> e.mapValues { plain(it.value) }
        is JsonArray -> e.map { plain(it) }
        is JsonPrimitive -> if (e.isString) e.content else e.content.toBigDecimalOrNull()?.let(::number) ?: e.content
    }

    private fun number(n: BigDecimal) = n.stripTrailingZeros()
}
