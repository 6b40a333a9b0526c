package dev.fieldmesh.app.screen

import android.view.View
import android.widget.RadioButton
import android.widget.RadioGroup
import android.widget.Switch
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.device.VoiceState

/** What a person has chosen for this phone. */
interface Choices {
    var unit: SpeedUnit
    var spokenCues: Boolean
    var gpsdServer: Boolean
    val voice: VoiceState
}

/** In what unit speeds are, whether the phone speaks, and to whom it serves its GPS. */
class SettingsScreen(override val view: View, private val choices: Choices) : Screen {
    private val context = view.context

    init {
        val group = view.findViewById<RadioGroup>(R.id.units)
        for ((unit, id) in BUTTONS) {
            group.findViewById<RadioButton>(id).apply {
                text = Speeds(context, unit).symbol
                isChecked = choices.unit == unit
            }
        }
        group.setOnCheckedChangeListener { _, id -> choices.unit = BUTTONS.entries.first { it.value == id }.key }
        view.findViewById<Switch>(R.id.speech).apply {
            isChecked = choices.spokenCues
            setOnCheckedChangeListener { _, on -> choices.spokenCues = on }
        }
        view.findViewById<Switch>(R.id.gpsd).apply {
            isChecked = choices.gpsdServer
            setOnCheckedChangeListener { _, on -> choices.gpsdServer = on }
        }
    }

    override fun show(state: AppState) {
        val lacks = context.voiceText(choices.voice)
        val has = if (choices.voice == VoiceState.READY) R.string.voice_ready else R.string.voice_starting
        view.findViewById<TextView>(R.id.voice).apply {
            text = lacks ?: context.getString(has)
            setTextColor(context.getColor(if (lacks == null) R.color.text else R.color.bad))
        }
    }

    private companion object {
        val BUTTONS = mapOf(
            SpeedUnit.KMH to R.id.unit_kmh,
            SpeedUnit.MPH to R.id.unit_mph,
            SpeedUnit.MPS to R.id.unit_mps,
        )
    }
}
