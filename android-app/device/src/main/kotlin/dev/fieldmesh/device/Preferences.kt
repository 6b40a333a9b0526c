package dev.fieldmesh.device

import android.content.Context
import android.content.SharedPreferences
import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Shelf
import dev.fieldmesh.core.app.SpeedUnit
import java.io.File

/** What the app keeps over the end of its process. */
class Preferences(context: Context) {
    private val store: SharedPreferences = context.getSharedPreferences("fieldmesh", Context.MODE_PRIVATE)

    var pairing: Pairing?
        get() = store.getString("pairing", null)?.let(Pairing::parse)
        set(value) = store.edit().putString("pairing", value?.toString()).apply()

    /** The nodes that a code let the app in to, of which one is with this phone; until the app is unpaired. */
    var nodes: List<FleetNode>
        get() = store.getString("nodes", null).orEmpty().lines().mapNotNull(::nodeOf)
        set(value) = store.edit().putString("nodes", value.joinToString("\n") { "${it.name} ${it.pairing}" }).apply()

    private fun nodeOf(line: String): FleetNode? =
        Pairing.parse(line.substringAfterLast(' '))?.let { FleetNode(line.substringBeforeLast(' '), it) }

    /** Whether gpsd's protocol is spoken to every program on the phone. */
    var gpsdServer: Boolean
        get() = store.getBoolean("gpsd_server", false)
        set(value) = store.edit().putBoolean("gpsd_server", value).apply()

    /** In what speeds are shown and spoken. */
    var speedUnit: SpeedUnit
        get() = SpeedUnit.entries.find { it.name == store.getString("speed_unit", null) } ?: SpeedUnit.KMH
        set(value) = store.edit().putString("speed_unit", value.name).apply()

    var spokenCues: Boolean
        get() = store.getBoolean("spoken_cues", true)
        set(value) = store.edit().putBoolean("spoken_cues", value).apply()

    /** Whether the phone keeps what it receives, for a drive without an agent. */
    var logging: Boolean
        get() = store.getBoolean("logging", false)
        set(value) = store.edit().putBoolean("logging", value).apply()

    /** Whether a person has the receiver read: until they stop it, also when the process ended in between. */
    var gpsWanted: Boolean
        get() = store.getBoolean("gps_wanted", false)
        set(value) = store.edit().putBoolean("gps_wanted", value).apply()

    /** Whether a person wants this phone to be a node: until they stop it, also when the process ended in between. */
    var nodeWanted: Boolean
        get() = store.getBoolean("node_wanted", false)
        set(value) = store.edit().putBoolean("node_wanted", value).apply()

    /** What this phone's node is called; null before a person has said so. */
    var nodeName: String?
        get() = store.getString("node_name", null)
        set(value) = store.edit().putString("node_name", value).apply()

    /** The interface of the Wi-Fi that the phone was in last; before that, what AOSP calls it (wifi.interface). */
    var wifiInterface: String
        get() = store.getString("wifi_interface", null) ?: "wlan0"
        set(value) = store.edit().putString("wifi_interface", value).apply()

    /** Where the map lies that a person chose, as a URI. */
    var map: String?
        get() = store.getString("map", null)
        set(value) = store.edit().putString("map", value).apply()

    /** Notes that the node does not have yet; written at once, since the process may end. */
    val notes: Shelf = shelf("notes")

    /** Photos and recordings that the node does not have yet. */
    val attachments = Attachments(File(context.noBackupFilesDir, "attachments"))

    /** An experimenter's controller, choice and wishes; written at once, too. */
    val experiment: Shelf = shelf("experiment")

    private fun shelf(name: String) = object : Shelf {
        override fun load(): String? = store.getString(name, null)

        override fun save(text: String) {
            store.edit().putString(name, text).commit()
        }
    }
}
